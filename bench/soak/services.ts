import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSandbox } from '../../packages/registrar-sandbox/src/index.ts'

/** A service as a process of its own, and what the kernel says of it. */
export interface Service {
  name: string
  port: number
  token: string
  /** Megabytes of resident memory, and open descriptors. */
  measure: () => { rss: number; fds: number }
}

export type Services = Awaited<ReturnType<typeof startServices>>

/** Both services before a sandbox, in a folder that goes with them. */
export async function startServices() {
  const folder = mkdtempSync(join(tmpdir(), 'soak-'))
  const account = { apiUser: 'soak', apiKey: 'soak-key-of-the-bench' }
  const domains = Array.from({ length: 20 }, (_, at) => ({ name: `soak${at}.com`, hosts: [] }))
  const sandbox = await startSandbox({ ...account, rate: 'off', domains })
  const children: ChildProcess[] = []
  // Who breaks the soak off leaves no service behind.
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL')
  })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const start = async (name: string, env: Record<string, string>) => {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../../packages', name, 'dist/main.js')], {
      env: {
        MALLOC_ARENA_MAX: '1', // As in every way to install the services.
        PORT: '0',
        DATA_DIR: join(folder, name),
        JWT_SECRET: 'a secret of the soak that is long enough',
        ADMIN_USERNAME: 'admin',
        ADMIN_PASSWORD: 'a password of the soak',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    const port = await readPort(child)
    return { name, port, token: await logIn(port), measure: () => measure(child.pid ?? 0) }
  }
  const files = await start('static-service', {})
  const names = await start('domain-service', {
    REGISTRAR_URL: sandbox.url,
    REGISTRAR_API_USER: account.apiUser,
    REGISTRAR_API_KEY: account.apiKey,
    REGISTRAR_CLIENT_IP: '127.0.0.1',
    REGISTRAR_RATE: '1000000/minute',
  })
  return {
    files,
    names,
    [Symbol.asyncDispose]: async () => {
      const ended = children.map((child) => once(child, 'exit'))
      for (const child of children) child.kill()
      await Promise.all(ended)
      await sandbox.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

// The lines of the log are read to the end, so that the service never waits for us; only the first are looked at.
function readPort(child: ChildProcess): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let head = ''
  child.stdout?.on('data', (chunk) => {
    if (head.length > 10_000) return
    head += chunk
    const [, port] = /listening at http:\/\/127\.0\.0\.1:(\d+)/.exec(head) ?? []
    if (port) resolve(Number(port))
  })
  child.on('exit', () => reject(new Error(`it ended:\n${head}`)))
  return promise
}

async function logIn(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: 'a password of the soak' }),
  })
  const { access_token } = (await answer.json()) as { access_token: string } // As the contract says.
  return access_token
}

function measure(pid: number) {
  const [, rss = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return { rss: Math.round(Number(rss) / 1024), fds: readdirSync(`/proc/${pid}/fd`).length }
}
