import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

// Runs everything on the embedded defaults, for a person at a terminal: the services, the sandbox behind them, one
// users file for all, and what to try next. DATA_DIR and PORT_BASE move it elsewhere.

const root = join(import.meta.dirname, '..')
const data = resolve(root, process.env.DATA_DIR ?? 'data')
const portBase = Number(process.env.PORT_BASE ?? 3001)
const isWatching = process.argv.includes('--watch')
const endWithStart = new URL('end-with-start.ts', import.meta.url).href
const children = new Set<ChildProcess>()
let isStopping = false

const username = 'admin'
const password = readAdminPassword()
const shared = {
  USERS_FILE: join(data, 'users.json'),
  ADMIN_USERNAME: username,
  ADMIN_PASSWORD: password,
}

const sandbox = {
  name: 'registrar-sandbox',
  port: portBase + 2,
  env: { SANDBOX_FILE: join(data, 'registrar.json') },
}
const domains = {
  name: 'domain-service',
  port: portBase,
  env: { ...shared, ...readRegistrar(), DATA_DIR: join(data, 'domain-service') },
}
const files = {
  name: 'static-service',
  port: portBase + 1,
  env: { ...shared, DATA_DIR: join(data, 'static-service') },
}
const programs = [sandbox, domains, files].filter(({ name }) => existsSync(mainOf(name)))

process.on('SIGINT', stop)
process.on('SIGTERM', stop)
for (const program of programs) {
  run(program)
  await untilHealthy(program)
}
process.stdout.write(tellWhatToTry())

function run({ name, port, env }: { name: string; port: number; env: Record<string, string> }) {
  const options = [...(isWatching ? ['--watch'] : []), '--import', endWithStart]
  const child = spawn(process.execPath, [...options, mainOf(name)], {
    cwd: root,
    env: {
      LOG_LEVEL: 'warn',
      MALLOC_ARENA_MAX: '2',
      NODE_COMPILE_CACHE: compiledOf(name),
      ...process.env,
      ...env,
      PORT: String(port),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true, // Ctrl-C reaches this script only, which stops them in order.
  })
  // Lines for people, by a pipe: the services themselves write JSON.
  const pretty = spawn(join(root, 'node_modules/.bin/pino-pretty'), ['--ignore', 'pid,hostname'], {
    stdio: ['pipe', 'inherit', 'inherit'],
    detached: true,
  })
  child.stdout.pipe(pretty.stdin)
  child.on('exit', (code) => {
    children.delete(child)
    if (code) process.exitCode = code
    stop()
  })
  children.add(child)
}

function stop() {
  if (isStopping) return // A second signal would end them without order.
  isStopping = true
  for (const child of children) child.kill('SIGTERM')
}

async function untilHealthy({ name, port }: { name: string; port: number }) {
  const deadline = Date.now() + 30_000
  while (children.size > 0) {
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    if (answer?.ok) return
    if (Date.now() > deadline) throw new Error(`${name} did not become healthy`)
    await new Promise((wake) => setTimeout(wake, 50))
  }
  process.exit(1)
}

// With a registrar of your own in the environment the services use that one.
function readRegistrar(): Record<string, string> {
  if (process.env.REGISTRAR_URL) return {}
  return {
    REGISTRAR_URL: `http://127.0.0.1:${portBase + 2}/xml.response`,
    REGISTRAR_API_USER: 'sandbox',
    REGISTRAR_API_KEY: 'sandbox-key-for-development-only',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
  }
}

// Made at the first start and kept beside the data, so that the next start can show it again.
function readAdminPassword(): string {
  const file = join(data, 'admin-password')
  mkdirSync(data, { recursive: true })
  if (!existsSync(file)) {
    writeFileSync(file, `${randomBytes(12).toString('base64url')}\n`, { mode: 0o600 })
  }
  return readFileSync(file, 'utf8').trim()
}

function tellWhatToTry(): string {
  const services = [domains, files].filter((service) => programs.includes(service))
  const examples = services.map(({ name, port }) => readExamples(name, port))
  return `
${programs.map(({ name, port }) => `  ${name.padEnd(18)} http://127.0.0.1:${port}`).join('\n')}

  Log in as ${username} with the password ${password}
  Read and try the API: ${services.map(({ port }) => `http://127.0.0.1:${port}/docs`).join(' and ')}

Paste these into another terminal:

${examples.join('\n')}
Ctrl-C stops everything.
`
}

function readExamples(name: string, port: number): string {
  const text = readFileSync(join(import.meta.dirname, 'examples', `${name}.sh`), 'utf8')
  return text.replaceAll('PASSWORD', password).replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`)
}

function mainOf(name: string): string {
  return join(root, 'packages', name, 'src/main.ts')
}

// Where the services keep what they have compiled; known from the beginning, it spares them a compiler.
function compiledOf(name: string): string {
  return join(root, 'packages', name, 'node_modules/.cache/compiled')
}
