import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'

const root = new URL('../../..', import.meta.url).pathname
const index = new URL('../src/index.ts', import.meta.url).href

/** Runs a small service in a process of its own. `body` becomes its `createService`. */
async function run(body: string, env: Record<string, string> = {}, command = [process.execPath]) {
  const script = `
    import { named, readEnv, serverConfig, serverSettings, startService, StartRefusedError, createApp } from '${index}'
    import { z } from 'zod'
    const settings = z.object(serverSettings({ port: 0, dataDir: 'data' }))
    await startService({
      name: 'things',
      readConfig: (env) => ({ ...named(readEnv(settings, env)), ...serverConfig(readEnv(settings, env)) }),
      createService: async (config, log) => { ${body} },
    })`
  const [program = '', ...args] = [...command, '--input-type=module', '-e', script]
  const child = spawn(program, args, {
    cwd: import.meta.dirname,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { stderr, status }
}

const appWith = (routes: string) => `return createApp({
  about: { title: 'Things', version: '1', description: '' }, log, ...config,
  metrics: undefined, health: () => ({ checks: {} }), maxQueueMs: 60_000, maxLoopDelayMs: 60_000,
}, async (app) => { ${routes} })`
const createApp = appWith('')
// Waits of at most so many milliseconds take a hundredth of their time, and longer ones a hundred times as long: a machine
// that stands still does not reach these.
const hurry = (maxMs: number) => `const wait = setTimeout
  globalThis.setTimeout = (run, ms) => wait(run, ms > ${maxMs} ? ms * 100 : ms / 100)`

test('a port in use is named in one sentence, with the setting to change', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // Listening on TCP.

  const { status, stderr } = await run(createApp, { PORT: String(port) })

  expect([status, stderr]).toEqual([
    1,
    `Cannot start: port ${port} on 127.0.0.1 is in use: stop the program that uses it, or set PORT.\n`,
  ])
})

test.each(['SIGTERM', 'SIGINT'])('%s during a start, as of stores that do not answer, exits 0', async (signal) => {
  const { status } = await run(
    `process.kill(process.pid, '${signal}'); await new Promise(() => setInterval(() => {}, 1000))`,
  )

  expect(status).toBe(0)
})

test('a signal at the end of a start stops the service', async () => {
  const { status } = await run(`
    const app = await (async () => { ${createApp} })()
    process.kill(process.pid, 'SIGTERM')
    return app`)

  expect(status).toBe(0)
})

test('a second signal, while a store does not close, exits at once', async () => {
  const { status } = await run(`${hurry(0)}
    const app = await (async () => { ${createApp} })()
    const stop = () => process.kill(process.pid, 'SIGTERM')
    app.addHook('onListen', async () => stop())
    app.addHook('onClose', async () => { stop(); await new Promise(() => {}) })
    return app`)

  // One signal exits with 0, after 10 s.
  expect(status).toBe(1)
})

test('a store that does not close is left after 10 s', async () => {
  const { status } = await run(`${hurry(15_000)}
    const app = await (async () => { ${createApp} })()
    app.addHook('onListen', async () => process.kill(process.pid, 'SIGTERM'))
    app.addHook('onClose', () => new Promise(() => setTimeout(() => process.exit(3), 15_000)))
    return app`)

  expect(status).toBe(0)
})

test('stores are closed although a request does not end', async () => {
  const routes = `app.get('/endless', { config: {}, schema: { operationId: 'wait' } }, () =>
    new Promise(() => process.kill(process.pid, 'SIGTERM')))`
  const { status, stderr } = await run(`${hurry(9000)}
    const app = await (async () => { ${appWith(routes)} })()
    app.addHook('onListen', async () => {
      const { get } = await import('node:http')
      // A busy machine may shed it.
      const ask = () =>
        get({ port: app.server.address().port, path: '/endless' }, (answer) => answer.resume().on('end', ask)).on('error', () => {})
      ask()
    })
    app.addHook('onClose', async () => console.error('closed'))
    return app`)

  expect([status, stderr]).toEqual([0, 'closed\n'])
})

test('an address of another machine is named', async () => {
  const { status, stderr } = await run(createApp, { HOST: '192.0.2.1' })

  expect([status, stderr]).toEqual([1, 'Cannot start: listen EADDRNOTAVAIL: address not available 192.0.2.1\n'])
})

test('an invalid environment lists every error without values', async () => {
  const { status, stderr } = await run(createApp, { PORT: 'abc', MAX_CONNECTIONS: '0' })

  expect(status).toBe(1)
  expect(stderr).toBe(
    'The environment is not valid:\n' +
      '  - PORT: must be a whole number from 0 to 65535\n' +
      '  - MAX_CONNECTIONS: must be a whole number of at least 1\n',
  )
})

test.each([
  ['new StartRefusedError("Not like this.")', 'Not like this.\n'],
  [
    'new (await import("@domains-and-files/persistence")).DatabaseUnavailableError(new Error("Query read timeout"))',
    'Cannot use the database in DATABASE_URL: Query read timeout.\n',
  ],
  [
    'Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" })',
    'Cannot start: cannot use the database in DATA_DIR: database is locked.\n',
  ],
  [
    'Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" })',
    'Cannot start: ENOSPC: no space left on device, write\n',
  ],
])('%s ends the start in one sentence', async (error, sentence) => {
  const { status, stderr } = await run(`throw ${error}`)

  expect([status, stderr]).toEqual([1, sentence])
})

test.each([
  ['an invalid setting', 78, createApp, { PORT: 'abc' }],
  ['a refused start', 78, 'throw new StartRefusedError("Not like this.")', {}],
  ['an address that may appear later', 1, createApp, { HOST: '192.0.2.1' }],
])('started by systemd, %s exits with %i', async (_name, expected, body, env) => {
  // The shell's process id is that of Node after exec, as with ExecStart=.
  const { status } = await run(body, env, ['sh', '-c', 'SYSTEMD_EXEC_PID=$$ exec "$@"', 'sh', process.execPath])

  expect(status).toBe(expected)
})

test('a program that systemd did not start itself exits with 1 on an invalid setting', async () => {
  const { status } = await run(createApp, { PORT: 'abc', SYSTEMD_EXEC_PID: '1' })

  expect(status).toBe(1)
})

test.each(['domain-service', 'static-service', 'console'])(
  'the unit of %s does not restart after status 78',
  (name) => {
    const unit = readFileSync(`${root}/docs/install/${name}.service`, 'utf8')

    expect(unit).toMatch(/^RestartPreventExitStatus=78$/m)
  },
)

test('a bug at start shows its stack', async () => {
  const { status, stderr } = await run('throw new TypeError("a bug")')

  expect(status).toBe(1)
  expect(stderr).toMatch(/TypeError: a bug\n\s+at /)
})
