import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export interface Everything extends AsyncDisposable {
  domains: string
  files: string
  sandbox: string
  console: string
  password: string
  /** A temporary directory, removed at disposal. */
  dataDir: string
  /** The first screen. */
  text: string
  child: ChildProcess
}

const unlimited = { SANDBOX_RATE: 'off', REGISTRAR_RATE: '1000/minute' }

/** Everything that `npm start` runs, on free ports and in an empty data directory. */
export async function startEverything(
  options: string[] = [],
  rates: Record<string, string> = unlimited,
): Promise<Everything> {
  const dataDir = mkdtempSync(join(tmpdir(), 'everything-'))
  const portBase = (await findFreePorts(4)) + 1 // The console has the port below.
  const child = spawn(process.execPath, ['scripts/start/main.ts', ...options], {
    cwd: root,
    env: {
      ...process.env,
      DATA_DIR: dataDir,
      PORT_BASE: String(portBase),
      NODE_ENV: 'development',
      METRICS_TOKEN: metricsToken,
      ...rates,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const text = await readUntil(child, 'Ctrl-C stops everything.')
  const at = (offset: number) => `http://127.0.0.1:${portBase + offset}`
  return {
    domains: at(0),
    files: at(1),
    sandbox: at(2),
    console: at(-1),
    password: readFileSync(join(dataDir, 'admin-password'), 'utf8').trim(),
    dataDir,
    text,
    child,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null && child.kill()) {
        await once(child, 'exit')
      }
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

export const metricsToken = 'metrics-token-of-these-tests'

/** The program's output up to and including `end`. Rejects if the program exits first. */
export async function readUntil(child: ChildProcess, end: string): Promise<string> {
  let text = ''
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const read = (chunk: Buffer) => {
    text += chunk
    if (text.includes(end)) resolve(text)
  }
  child.stdout?.on('data', read)
  child.stderr?.on('data', read)
  child.on('exit', () => reject(new Error(`exited before it was ready:\n${text}`)))
  return promise
}

/** The first of `count` consecutive free ports, below those that the system gives to clients. */
async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const base = 20_000 + Math.floor(Math.random() * 10_000)
    const free = await Promise.all(Array.from({ length: count }, (_, at) => isFree(base + at)))
    if (free.every(Boolean)) return base
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = net.createServer()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
