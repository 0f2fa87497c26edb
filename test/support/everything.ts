import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reservePorts } from './ports.ts'

export const root = join(import.meta.dirname, '../..')

export interface Everything extends AsyncDisposable {
  domains: string
  files: string
  sandbox: string
  console: string
  password: string
  /** An OpenID provider, if there is one. */
  provider?: string
  /** A temporary directory, removed at disposal. */
  dataDir: string
  /** The first screen. */
  text: string
  child: ChildProcess
}

/** NODE_OPTIONS of services that shed no load. */
export const neverLate = `--import ${join(import.meta.dirname, 'never-late.ts')}`

/** Settings of services whose clients may stand still, as on a busy machine, and still expect a complete response. */
export const slowClients = {
  HEADERS_TIMEOUT_MS: '120000',
  BODY_IDLE_TIMEOUT_MS: '3600000',
  STALL_TIMEOUT_MS: '3600000',
}

/** The same for a program, also while it stops. */
export const patient = {
  NODE_OPTIONS: `${neverLate} --import ${join(import.meta.dirname, 'unhurried-stop.ts')}`,
  ...slowClients,
}

export const unlimited = { SANDBOX_RATE: 'off', REGISTRAR_RATE: '1000/minute' }

/** Preloaded into a program whose standard input is a pipe: a test run that is killed leaves none behind. */
export const exitWithParent = join(root, 'scripts/start/exit-with-parent.ts')

/** Everything that `npm start` runs, on free ports and in an empty data directory. */
export async function startEverything(
  options: string[] = [],
  rates: Record<string, string> = unlimited,
): Promise<Everything> {
  const dataDir = mkdtempSync(join(tmpdir(), 'everything-'))
  const portBase = (await reservePorts(4)) + 1 // The console has the port below.
  const child = spawn(process.execPath, ['--import', exitWithParent, 'scripts/start/main.ts', ...options], {
    cwd: root,
    env: {
      ...process.env,
      NODE_OPTIONS: neverLate,
      DATA_DIR: dataDir,
      PORT_BASE: String(portBase),
      NODE_ENV: 'development',
      METRICS_TOKEN: metricsToken,
      WEBHOOK_NETWORKS: '127.0.0.1/32',
      WEBHOOK_HTTP: 'true',
      ...slowClients,
      ...rates,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // All programs have its standard error, so this waits for all of them: each writes to the data directory until it ends.
  const ended = once(child, 'close')
  const text = await readUntil(child, 'Ctrl-C stops everything.')
  const at = (offset: number) => `http://127.0.0.1:${portBase + offset}`
  return {
    domains: at(0),
    files: at(1),
    sandbox: at(2),
    console: at(-1),
    password: rates.ADMIN_PASSWORD ?? readFileSync(join(dataDir, 'admin-password'), 'utf8').trim(),
    dataDir,
    text,
    child,
    [Symbol.asyncDispose]: async () => {
      child.stdin.destroy() // As when this process is killed.
      await ended
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
