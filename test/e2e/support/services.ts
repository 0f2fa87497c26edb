import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exitWithParent } from '../../support/everything.ts'
import { reservePorts } from '../../support/ports.ts'
import { until } from './step.ts'

const root = join(import.meta.dirname, '../../..')

export interface Program extends AsyncDisposable {
  port: number
  /** Ends it at once, as the kernel does. */
  crash: () => Promise<void>
  /** Log lines so far. */
  lines: () => string[]
}

/** Both services and the console as processes, the domain service on a sandbox, with an admin `boss`. */
export interface Services extends AsyncDisposable {
  domains: Program
  files: Program
  console: Program
  /** DATA_DIR of the static service. */
  dataDir: string
}

export const password = 'correct horse battery'

export async function startServices(
  env: Record<string, string>,
  consoleEnv: Record<string, string>,
): Promise<Services> {
  const folder = mkdtempSync(join(tmpdir(), 'services-'))
  const shared = { ADMIN_USERNAME: 'boss', ADMIN_PASSWORD: password, ...env }
  const sandbox = await startProgram('registrar-sandbox', {})
  const domains = await startProgram('domain-service', {
    ...shared,
    DATA_DIR: join(folder, 'domains'),
    REGISTRAR_URL: `http://127.0.0.1:${sandbox.port}/xml.response`,
    REGISTRAR_API_USER: 'sandbox',
    REGISTRAR_API_KEY: 'sandbox-key-for-development-only',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
  })
  const dataDir = join(folder, 'files')
  const files = await startProgram('static-service', { ...shared, DATA_DIR: dataDir })
  const webConsole = await startProgram('console', consoleEnv)
  return {
    domains,
    files,
    console: webConsole,
    dataDir,
    async [Symbol.asyncDispose]() {
      for (const program of [webConsole, files, domains, sandbox]) await program[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts a package's program on a free port, or on that of PORT; resolves when it is healthy. */
export async function startProgram(name: string, env: Record<string, string>): Promise<Program> {
  const port = Number(env.PORT ?? (await reservePorts()))
  const main = join(root, 'packages', name, 'dist/main.js')
  const child: ChildProcess = spawn(process.execPath, ['--import', exitWithParent, main], {
    env: { PATH: process.env.PATH, PORT: String(port), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit')
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      text += chunk
    })
  }
  await until(`${name} is healthy`, async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended:\n${text}`)
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    return answer?.ok || undefined
  })
  return {
    port,
    lines: () => text.split('\n').filter(Boolean),
    async crash() {
      child.kill('SIGKILL')
      await ended
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
