import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cores } from './settings.ts'

/** A server in its own process. */
export interface Program extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string
  /** Milliseconds from spawn to the first response. */
  startedIn: number
  /** Resident memory in bytes: now, and the peak since the last `resetPeak`. */
  memory: () => { now: number; peak: number }
  resetPeak: () => void
  /** Seconds of CPU time so far. */
  cpu: () => number
}

// No child outlives the bench, however it ends.
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill()
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

export interface Command {
  name: string
  /** Program and arguments. */
  run: (port: number) => string[]
  /** Gets its log, `<name>.log`. */
  folder: string
  env?: Record<string, string>
  core?: number | undefined
  /** The path whose response shows that it is up, and the statuses that do; by default `/` and 2xx. */
  health?: string
  isUp?: (status: number) => boolean
}

/** Starts a server on a free port and one core, and waits until it responds. */
export async function start(command: Command): Promise<Program> {
  const { name, folder, core = cores.server, health = '/' } = command
  const { isUp = (status) => status >= 200 && status < 300 } = command
  const port = await findPort()
  const url = `http://127.0.0.1:${port}`
  mkdirSync(folder, { recursive: true })
  const logFile = join(folder, `${name}.log`)
  const log = openSync(logFile, 'a')
  const began = performance.now()
  // taskset executes the program in place, so the process id is the program's.
  const child = spawn('taskset', ['-c', String(core), ...command.run(port)], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      NODE_ENV: 'production',
      PORT: String(port),
      ...command.env,
    },
    cwd: folder,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  children.add(child)
  child.once('exit', () => children.delete(child))
  const ended = once(child, 'exit')
  while (!isUp((await fetch(url + health).catch(() => undefined))?.status ?? 0)) {
    if (child.exitCode !== null || performance.now() - began > 30_000) {
      child.kill('SIGKILL')
      throw new Error(`${name} did not start: ${readFileSync(logFile, 'utf8').slice(-300)}`)
    }
    await sleep(2)
  }
  return {
    url,
    startedIn: performance.now() - began,
    memory: () => readMemory(child.pid),
    resetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, '5'),
    cpu: () => readCpu(child.pid),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      const isLate = AbortSignal.timeout(12_000)
      isLate.addEventListener('abort', () => child.kill('SIGKILL'))
      await ended
    },
  }
}

/** Runs a command on one core; returns its standard output. */
export async function run(
  args: string[],
  { core = cores.server, env = {} }: { core?: number; env?: Record<string, string> } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)('taskset', ['-c', String(core), ...args], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...env },
    maxBuffer: 64 * 1024 * 1024,
  })
  return stdout
}

/** The command that runs a script of the bench. */
export const script = (name: string) => [process.execPath, join(import.meta.dirname, '..', name)]

async function findPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || !address) throw new Error('there is no free port')
  return address.port
}

// proc_pid_stat(5): fields 14 and 15, utime and stime, in hundredths of a second. The name before may contain spaces.
function readCpu(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

// proc_pid_status(5): VmRSS is the resident memory, VmHWM its peak, both in KiB.
function readMemory(pid: number | undefined) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]) * 1024
  return { now: read('VmRSS'), peak: read('VmHWM') }
}
