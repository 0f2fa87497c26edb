import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exampleSecret } from '@domains-and-files/auth'
import { startSandbox } from '@domains-and-files/registrar-sandbox'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { neverLate } from '../../../test/support/everything.ts'
import { readConfig, Settings } from '../src/config.ts'
import { apiKey, www } from './support/start.ts'

interface Program {
  child: ChildProcess
  /** Its status, once all of its output is here. */
  ended: Promise<number | null>
  output: () => string
  /** Resolves with what was written so far when `text` is in it. */
  saw: (text: string) => Promise<string>
}

/** The service as a process of its own. */
function run(env: Record<string, string>): Program {
  const dataDir = mkdtempSync(join(tmpdir(), 'domain-process-'))
  const child = spawn(process.execPath, [join(import.meta.dirname, '../dist/main.js')], {
    env: {
      PATH: process.env.PATH,
      NODE_OPTIONS: neverLate,
      DATA_DIR: dataDir,
      PORT: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close').then(([status]): number | null => status)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(dataDir, { recursive: true, force: true })
  })
  let written = ''
  const watchers = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      written += chunk
      for (const look of watchers) look()
    })
  }
  const saw = (text: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const look = () => written.includes(text) && resolve(written)
    watchers.add(look)
    void ended.then(() => reject(new Error(`it ended:\n${written}`)))
    look()
    return promise
  }
  return { child, ended, output: () => written, saw }
}

const secret = 'x'.repeat(40)
const account = {
  REGISTRAR_URL: 'http://127.0.0.1:9/xml.response',
  REGISTRAR_API_USER: 'a',
  REGISTRAR_API_KEY: apiKey,
  REGISTRAR_CLIENT_IP: '127.0.0.1',
}
const production = {
  NODE_ENV: 'production',
  JWT_SECRET: secret,
  ADMIN_USERNAME: 'admin',
  ADMIN_PASSWORD: 'a long password',
  ...account,
}

test.each([
  ['no secret', { ...production, JWT_SECRET: '' }, /JWT_SECRET is missing/],
  ['a short secret', { ...production, JWT_SECRET: 'short' }, /JWT_SECRET has fewer than 32 bytes/],
  ['a published secret', { ...production, JWT_SECRET: exampleSecret }, /JWT_SECRET is a published example/],
  ['no users', { ...production, ADMIN_USERNAME: '', ADMIN_PASSWORD: '' }, /There are no users/],
  [
    'no registrar',
    { ...production, REGISTRAR_URL: '', REGISTRAR_API_KEY: '' },
    /REGISTRAR_URL: .*\n.*REGISTRAR_API_KEY: /,
  ],
  [
    'several faults',
    { PORT: 'x', CACHE_TTL_MS: '-1', REGISTRAR_RATE: 'many', VERIFY_WRITES: 'maybe' },
    /PORT: .*REGISTRAR_RATE: .*CACHE_TTL_MS: .*VERIFY_WRITES: /s,
  ],
])('a start with %s is refused in plain words, with status 1', async (_name, env, words) => {
  const { ended, output } = run(env)

  const code = await ended

  expect(code).toBe(1)
  expect(output()).toMatch(words)
  expect(output()).not.toMatch(/^\s+at /m)
  expect(output()).not.toContain(apiKey)
})

const openForTest = (file: string) => {
  const db = new Sqlite(file)
  onTestFinished(() => {
    db.close()
  })
  return db
}

test.each([
  [
    'none',
    (file: string) => writeFileSync(file, 'x'.repeat(9000)),
    /^Cannot start: cannot use the database in DATA_DIR: file is not a database\.$/m,
  ],
  [
    'locked',
    (file: string) => openForTest(file).exec('begin exclusive'),
    /^Cannot start: cannot use the database in DATA_DIR: database is locked\.$/m,
  ],
  [
    'of a newer version',
    (file: string) =>
      openForTest(file).exec(
        "create table migrations (part text primary key, applied integer); insert into migrations values ('ledger', 1000)",
      ),
    /^The database in DATA_DIR is of a newer version of this service: start that version, or .*/m,
  ],
])('a start on a database that is %s is refused in one sentence, with status 1', async (_name, harm, words) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'domain-broken-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  harm(join(dataDir, 'domain-service.sqlite'))
  const { ended, output } = run({ ...production, DATA_DIR: dataDir })

  const code = await ended

  expect(code).toBe(1)
  expect(output()).toMatch(words)
  expect(output()).not.toMatch(/^\s+at /m)
})

test('in development the first start creates an admin and prints the password once', async () => {
  const program = run({ LOG_LEVEL: 'info' })

  await program.saw('listening')

  expect(await program.saw('not shown again')).toMatch(/the user admin with the password \S/)
})

test('SIGTERM completes requests under way, then exits 0; the log is JSON without secrets', async () => {
  await using sandbox = await startSandbox({
    apiUser: 'a',
    apiKey,
    rate: 'off',
    domains: [{ name: 'example.com', hosts: [www] }],
  })
  const program = run({ ...production, REGISTRAR_URL: sandbox.url })
  const { address, access_token } = await logIn(program)
  sandbox.fault({ kind: 'slow', ms: 60_000, command: 'namecheap.domains.dns.getHosts' })
  const running = fetch(`${address}/api/domains/example.com/dns/hosts`, {
    headers: { authorization: `Bearer ${access_token}` },
  })
  await expect.poll(() => sandbox.calls.length).toBe(1)

  program.child.kill('SIGTERM')
  await program.saw('"msg":"stopping"')
  sandbox.clearFaults()
  const answer = await running
  const code = await program.ended

  expect([answer.status, code]).toEqual([200, 0])
  for (const line of program.output().trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow()
  for (const hidden of [apiKey, access_token, 'a long password', secret]) expect(program.output()).not.toContain(hidden)
})

test('SIGTERM during a burst of writes and reads answers each of them, then exits 0', async () => {
  let answers: (number | string | undefined)[] = []
  // A busy machine may shed all writes of a burst.
  while (!answers.includes(201)) {
    await using sandbox = await startSandbox({
      apiUser: 'a',
      apiKey,
      rate: 'off',
      delayMs: 200,
      domains: [{ name: 'example.com', hosts: [www] }],
    })
    const env = { ...production, REGISTRAR_URL: sandbox.url, REGISTRAR_RATE: '1000/minute' }
    const program = run(env)
    const running = await sendBurst(program)

    program.child.kill('SIGTERM')
    answers = await Promise.all(running)
    const code = await program.ended

    const others = answers.filter((answer) => answer !== 'shed' && answer !== 201)
    expect(others).toEqual(others.map(() => 200))
    const added = answers.filter((answer) => answer === 201)
    expect(sandbox.zone('example.com').hosts).toHaveLength(1 + added.length)
    expect(code).toBe(0)
    expect(program.output()).toContain('"msg":"stopped"')
  }
})

/** Requests that the service has all read, and the statuses that will answer them. */
async function sendBurst(program: Program) {
  const { address, access_token } = await logIn(program)
  const hosts = `${address}/api/domains/example.com/dns/hosts`
  const authorization = `Bearer ${access_token}`
  const running = Array.from({ length: 40 }, (_, at) =>
    at % 4 === 0
      ? send(hosts, { headers: { authorization, 'cache-control': 'no-cache' } })
      : send(
          `${hosts}/A`,
          { method: 'POST', headers: { authorization, 'content-type': 'application/json' } },
          JSON.stringify({ name: `h${at}`, address: '192.0.2.1' }),
        ),
  )
  // Connections are accepted in their order, so that all of these are read before a newer one is answered.
  await Promise.all(running.map(({ sent }) => sent))
  await send(`${address}/health`, {}).status
  return running.map(({ status }) => status)
}

/** `sent` when all of it has left this process, `status` when it is answered; `shed` where the machine was too busy. */
function send(url: string, options: RequestOptions, body?: string) {
  const asked = request(url, { ...options, agent: false })
  const status = once(asked, 'response').then(async ([answer]: IncomingMessage[]) => {
    answer?.resume()
    return answer?.headers['retry-after'] === '2' ? 'shed' : answer?.statusCode
  })
  const sent = once(asked, 'finish')
  asked.end(body)
  return { sent, status }
}

test('a second signal exits at once', async () => {
  await using sandbox = await startSandbox({
    apiUser: 'a',
    apiKey,
    rate: 'off',
    domains: [{ name: 'example.com', hosts: [www] }],
  })
  const program = run({ ...production, REGISTRAR_URL: sandbox.url })
  const { address, access_token } = await logIn(program)
  sandbox.fault({ kind: 'slow', ms: 60_000, command: 'namecheap.domains.dns.getHosts' })
  const cut = fetch(`${address}/api/domains/example.com/dns/hosts`, {
    headers: { authorization: `Bearer ${access_token}` },
  }).catch(() => 'cut')
  await expect.poll(() => sandbox.calls.length).toBe(1)

  program.child.kill('SIGTERM')
  await program.saw('"msg":"stopping"')
  program.child.kill('SIGTERM')
  const code = await program.ended

  expect(code).toBe(1)
  expect(await cut).toBe('cut')
})

test('.env.example names every variable with a valid value', () => {
  const example = readExample()

  expect(Object.keys(Settings.shape).filter((name) => !(name in example))).toEqual([])
  expect(() => readConfig(example)).not.toThrow()
})

test('without a registrar in the environment the sandbox is used', () => {
  expect(readConfig({}).account).toMatchObject({
    url: 'http://127.0.0.1:3003/xml.response',
    apiUser: 'sandbox',
    registrar: 'sandbox',
  })
})

test('in production the sandbox is used only where REGISTRAR_URL names it', () => {
  const production = { NODE_ENV: 'production', JWT_SECRET: 'a secret that is long enough to pass' }
  const SANDBOX_URL = 'http://registrar-sandbox:3003/xml.response'

  expect(() => readConfig({ ...production, SANDBOX_URL })).toThrow(/REGISTRAR_URL: is required/)
  expect(readConfig({ ...production, ...account, SANDBOX_URL, REGISTRAR_URL: SANDBOX_URL }).account).toMatchObject({
    url: SANDBOX_URL,
    registrar: 'sandbox',
  })
  expect(readConfig({ ...production, ...account }).account.registrar).toBe(new URL(account.REGISTRAR_URL).host)
})

test('an incomplete account is refused', () => {
  expect(() => readConfig({ REGISTRAR_API_USER: 'me' })).toThrow(
    /REGISTRAR_URL.*\n.*REGISTRAR_API_KEY.*\n.*REGISTRAR_CLIENT_IP/,
  )
  expect(() => readConfig({ ...account, REGISTRAR_CLIENT_IP: '::1' })).toThrow(/IPv4/)
})

test('a database shared by replicas requires JWT_SECRET', () => {
  const env = { DATABASE_URL: 'postgres://localhost/domains' }

  expect(() => readConfig(env)).toThrow('JWT_SECRET: is required with DATABASE_URL')
  expect(() => readConfig({ ...env, JWT_SECRET: 'a secret' })).not.toThrow()
})

async function logIn(program: Program): Promise<{ address: string; access_token: string }> {
  const [, address = ''] = /listening at (http:[^"]+)/.exec(await program.saw('listening at')) ?? []
  const login = await fetch(`${address}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: 'a long password' }),
  })
  const { access_token } = (await login.json()) as { access_token: string } // As the contract says.
  return { address, access_token }
}

function readExample(): Record<string, string> {
  const text = readFileSync(join(import.meta.dirname, '../../../.env.example'), 'utf8')
  return Object.fromEntries(
    [...text.matchAll(/^#? ?([A-Z_]+)=(.*)$/gm)].map((match) => [match[1] ?? '', match[2] ?? '']),
  )
}
