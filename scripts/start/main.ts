import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { build as prettyPrinter } from 'pino-pretty'
import { describeStart } from './banner.ts'
import { type Admin, listPrograms, mainOf, type Program, readAdmin, root, sourceOf } from './programs.ts'
import { readSettings, requireFreePorts, requireWritable, StartError } from './settings.ts'

// `npm start`: runs the services, the registrar sandbox and the console on embedded defaults, with one users file, and
// prints what to try. DATA_DIR and PORT_BASE move it elsewhere; `--watch` restarts a program when its sources change.

const isWatching = process.argv.includes('--watch')
const children = new Set<ChildProcess>()
let isStarting = true
let isStopping = false

process.on('SIGINT', stop)
process.on('SIGTERM', stop)
try {
  await start()
} catch (error) {
  if (!(error instanceof StartError)) throw error
  process.stderr.write(`Cannot start: ${error.message}\n`)
  process.exitCode = 1
  stop()
}

async function start() {
  const settings = readSettings(root, process.env)
  await requireWritable(settings.dataDir)
  await requireFreePorts(listPrograms(settings, undefined))
  const admin = settings.isProduction ? undefined : readAdmin(settings.dataDir, process.env)
  const programs = listPrograms(settings, admin)
  // The next ones are started also where one fails, so that one run names the faulty settings of all.
  const failures: StartError[] = []
  for (const program of programs) {
    if (isStopping) return
    const failure = await untilHealthy(program, run(program))
    if (failure) failures.push(failure)
  }
  if (failures.length > 0) throw new StartError(failures.map(({ message }) => message).join(' '))
  isStarting = false
  if (children.size < programs.length) return stop() // One ended meanwhile.
  const isValid = admin !== undefined && (await canLogIn(programs, admin))
  process.stdout.write(describeStart(programs, isValid ? admin : undefined))
}

function run({ name, port, env }: Program): ChildProcess {
  const preload = new URL('exit-with-parent.ts', import.meta.url).href
  const program = isWatching ? ['--watch', sourceOf(name)] : [mainOf(name)]
  const child = spawn(process.execPath, ['--import', preload, ...program], {
    cwd: root,
    env: {
      LOG_LEVEL: 'warn',
      MALLOC_ARENA_MAX: '1',
      // Set before the process starts, the cache covers the entry module too.
      NODE_COMPILE_CACHE: join(root, 'packages', name, 'node_modules/.cache/compiled'),
      ...process.env,
      ...env,
      PORT: String(port),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true, // Ctrl-C reaches only this process, which stops the others in order.
  })
  // Services write JSON; a terminal gets text.
  child.stdout?.pipe(prettyPrinter({ ignore: 'pid,hostname' }))
  child.on('exit', (code) => {
    children.delete(child)
    if (code) process.exitCode = code
    if (!isStarting) stop()
  })
  children.add(child)
  return child
}

function stop() {
  if (isStopping) return // A second SIGTERM makes a service exit without finishing its requests.
  isStopping = true
  for (const child of children) child.kill('SIGTERM')
}

/** Whether the first admin still has this password. */
async function canLogIn(programs: Program[], { username, password }: Admin) {
  const service = programs.find(({ name }) => name.endsWith('-service'))
  const response = await fetch(`http://127.0.0.1:${service?.port}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password }),
  })
  return response.ok
}

/** An error if the program exits first; its own message is on standard error already. */
async function untilHealthy({ name, port }: Program, child: ChildProcess) {
  const deadline = Date.now() + 300_000
  while (child.exitCode === null && child.signalCode === null) {
    const response = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    if (response?.ok) return undefined
    if (Date.now() > deadline) return new StartError(`${name} is not healthy after five minutes.`)
    await sleep(50)
  }
  return new StartError(`${name} exited.`)
}
