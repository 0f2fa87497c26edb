import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cores } from './settings.ts'

/** A server that runs as a process of its own, and ends with the block that started it. */
export interface Program extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string
  /** Milliseconds from its start to its first answer. */
  startedIn: number
  /** Bytes of memory that it holds now, and the most that it held since the last `forgetPeak`. */
  memory: () => { now: number; peak: number }
  forgetPeak: () => void
}

// Nothing that was started outlives the bench, however it ends.
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill()
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

export interface Command {
  name: string
  /** The program and its arguments, once the port is known. */
  run: (port: number) => string[]
  /** Where its log goes, `<name>.log`. */
  folder: string
  env?: Record<string, string>
  core?: number
  /** What it answers when it is up. */
  health?: string
}

/** Starts a server on a free port and one core, and waits until it answers. */
export async function start(command: Command): Promise<Program> {
  const { name, folder, core = cores.server, health = '/' } = command
  const port = await findPort()
  const url = `http://127.0.0.1:${port}`
  mkdirSync(folder, { recursive: true })
  const logFile = join(folder, `${name}.log`)
  const log = openSync(logFile, 'a')
  const began = performance.now()
  // taskset becomes the program, so that its process id is the program's.
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
  while (!(await fetch(url + health).catch(() => undefined))?.ok) {
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
    forgetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, '5'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      const isLate = AbortSignal.timeout(12_000)
      isLate.addEventListener('abort', () => child.kill('SIGKILL'))
      await ended
    },
  }
}

/** Runs a command on one core to its end and gives what it printed. */
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

/** A script of ours beside this file, as the command that runs it. */
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

// proc_pid_status(5): VmRSS is what it holds, VmHWM the most that it held, both in KiB.
function readMemory(pid: number | undefined) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (field: string) =>
    Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]) * 1024
  return { now: read('VmRSS'), peak: read('VmHWM') }
}
