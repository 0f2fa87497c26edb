import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'

const index = new URL('../../src/index.ts', import.meta.url).href

/** Runs a small service in a process of its own. `body` becomes its `createService`. */
async function run(body: string, env: Record<string, string> = {}) {
  const script = `
    import { readEnv, serverConfig, serverSettings, startService, StartRefusedError, createApp, createMetrics } from '${index}'
    import { z } from 'zod'
    const settings = z.object(serverSettings({ port: 0, dataDir: 'data' }))
    await startService({
      name: 'things',
      readConfig: (env) => serverConfig(readEnv(settings, env)),
      createService: async (config, log) => { ${body} },
    })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    env: { PATH: process.env.PATH, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { stderr, status }
}

const createApp = `return createApp({
  about: { title: 'Things', version: '1', description: '' }, log, ...config,
  metrics: { registry: createMetrics(), token: undefined }, health: () => ({ checks: {} }),
}, async () => {})`

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

test('an address of another machine is named', async () => {
  const { status, stderr } = await run(createApp, { HOST: '192.0.2.1' })

  expect([status, stderr]).toEqual([
    1,
    'Cannot start: 192.0.2.1 is no address of this machine: set HOST.\n',
  ])
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
    'Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" })',
    'Cannot start: another process has locked the database in DATA_DIR: stop it first.\n',
  ],
  [
    'Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" })',
    'Cannot start: ENOSPC: no space left on device, write\n',
  ],
])('%s ends the start in one sentence', async (error, sentence) => {
  const { status, stderr } = await run(`throw ${error}`)

  expect([status, stderr]).toEqual([1, sentence])
})

test('a bug at start shows its stack', async () => {
  const { status, stderr } = await run('throw new TypeError("a bug")')

  expect(status).toBe(1)
  expect(stderr).toMatch(/TypeError: a bug\n\s+at /)
})
