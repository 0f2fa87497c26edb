import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { type Clock, createLogger, systemClock } from '@domains-and-files/http'
import { type DomainSketch, type Sandbox, startSandbox } from '@domains-and-files/registrar-sandbox'
import { request } from 'undici'
import { z } from 'zod'
import { slowClients } from '../../../../test/support/everything.ts'
import { password } from '../../../../test/support/test-users.ts'
import { readConfig } from '../../src/config.ts'
import { createService } from '../../src/service.ts'
import { followClock } from './database-clock.ts'
import { databaseOf, dropDatabaseOf } from './databases.ts'
import { driveClock } from './drive-clock.ts'
import { FakeClock } from './fake-clock.ts'
import { writeUsersFile } from './test-users.ts'

export const apiKey = 'api-key-that-nobody-must-see'

export const Host = z.object({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  address: z.string(),
  ttl: z.number(),
  mx_pref: z.number().optional(),
})

/** What answers look like to these tests; each field is there only on some of them. */
const Body = z.looseObject({
  code: z.string().optional(),
  detail: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  hosts: z.array(Host).optional(),
  // Of one change; a list of changes is at `change_list`.
  changes: z.object({ added: z.array(Host), removed: z.array(Host), kept: z.number() }).nullish(),
  change_list: z.array(z.looseObject({ id: z.number(), domain: z.string() })).optional(),
  warnings: z.array(z.string()).optional(),
  domains: z.array(z.looseObject({ name: z.string() })).nullish(),
  history: z
    .array(
      z.looseObject({
        id: z.number(),
        by: z.string().nullable(),
        changes: z.looseObject({ added: z.array(Host), removed: z.array(Host) }).optional(),
      }),
    )
    .optional(),
})

export interface Answer {
  status: number
  headers: Headers
  body: z.infer<typeof Body>
  /** The body as it came; `body` is empty where it is not JSON. */
  text: string
}

export interface Call {
  body?: unknown
  /** A body that is not JSON: set its content-type. */
  text?: string | Buffer
  headers?: Record<string, string>
  user?: string
}

export interface Service extends AsyncDisposable {
  url: string
  sandbox: Sandbox
  dataDir: string
  lines: () => Record<string, unknown>[]
  call: (method: string, path: string, options?: Call) => Promise<Answer>
  /** A session token of a user. */
  sessionOf: (user: string) => Promise<string>
  /** The commands that reached the registrar since they were last cleared, without their common prefix. */
  commands: () => string[]
  /** The same, reads in a row as one: where a second passes before the write, the zone is read again. */
  steps: () => string[]
  /** What the registrar now holds, as texts to compare. */
  live: (domain?: string) => string[]
  /** How many writes wait for a batch. */
  countWaiting: () => Promise<number>
  close: () => Promise<void>
}

interface Options {
  domains?: DomainSketch[]
  env?: Record<string, string>
  dataDir?: string
  sandbox?: Sandbox
  /** A PostgreSQL database, which other services may share. */
  databaseUrl?: string
  /** Shared by service and sandbox; the system's unless given. */
  clock?: Clock
}

/** The registrar's own limits, which every user meets. */
export const realRate = '20/minute,700/hour,8000/day'

export const www = { name: 'www', type: 'A', address: '192.0.2.1' }

/** The real service on a free port, before a registrar of its own; users `admin`, `editor`, `viewer`, `limited` and `proposer`. */
export async function start(options: Options = {}): Promise<Service> {
  const domains = options.domains ?? [{ name: 'example.com', hosts: [www] }]
  const sandbox =
    options.sandbox ??
    (await startSandbox({
      apiUser: 'tester',
      apiKey,
      rate: options.env?.REGISTRAR_RATE ?? 'off',
      domains,
      ...(options.clock ? { now: options.clock.now } : {}),
    }))
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'domain-service-'))
  const databaseUrl = options.databaseUrl ?? (await databaseOf(dataDir))
  const written: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      written.push(...String(chunk).trim().split('\n'))
      done()
    },
  })
  const config = readConfig({
    DATA_DIR: dataDir,
    JWT_SECRET: 'a secret of these tests that is long enough',
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: password,
    REGISTRAR_URL: sandbox.url,
    REGISTRAR_API_USER: 'tester',
    REGISTRAR_API_KEY: apiKey,
    REGISTRAR_CLIENT_IP: '127.0.0.1',
    REGISTRAR_RATE: '100000/minute',
    // A busy machine is no silent registrar. A fake clock has the default, by which the service looks for late writes.
    REGISTRAR_TIMEOUT_MS: options.clock ? '15000' : '120000',
    DRIFT_INTERVAL_S: '0',
    METRICS_TOKEN: 'metrics-token-of-tests',
    // The services of a test process share sessions, for longer than its tests take on any machine.
    TOKEN_TTL: '86400',
    ...slowClients,
    // A busy machine must not fail statements of tests.
    ...(databaseUrl && { DATABASE_URL: databaseUrl, DATABASE_TIMEOUT_MS: '150000' }),
    ...options.env,
  })
  const followed =
    databaseUrl !== undefined && options.clock instanceof FakeClock
      ? await followClock(databaseUrl, options.clock)
      : undefined
  if (databaseUrl === undefined) writeUsersFile(join(dataDir, 'users.json'))
  // A busy machine must not shed the requests of tests.
  const limits = { maxLoopDelayMs: 60_000, maxQueueMs: 60_000 }
  const app = await createService(
    { ...config, ...limits },
    createLogger({ name: 'domain-service', level: 'info' }, sink),
    options.clock ?? systemClock,
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo // An address with a port, since we listen on one.
  const url = `http://127.0.0.1:${port}`
  const tokenOf = (user: string) => {
    const token = tokens.get(user) ?? logIn(url, user)
    tokens.set(user, token)
    return token
  }
  const commands = () => sandbox.calls.map((call) => call.command.replace(/^namecheap\.domains\./i, '').toLowerCase())
  const closeApp = async () => {
    const closing = app.close()
    // A batch under way may wait for time to pass.
    if (options.clock instanceof FakeClock) await driveClock(options.clock, { sandbox }, closing)
    await closing
    await followed?.[Symbol.asyncDispose]()
  }
  const send: Service['call'] = async (method, path, { body, text, headers, user = 'admin' } = {}) => {
    // Not fetch, which adds headers of its own to conditional requests.
    const answer = await request(url + path, {
      method,
      headers: {
        authorization: `Bearer ${await tokenOf(user)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(text === undefined ? {} : { body: text }),
    })
    const received = await answer.body.text()
    const isJson = /json/.test(String(answer.headers['content-type']))
    return {
      status: answer.statusCode,
      headers: new Headers(Object.entries(answer.headers).map(([name, value]) => [name, String(value)])),
      body: Body.parse(isJson ? renameList(JSON.parse(received)) : {}),
      text: received,
    }
  }
  return {
    url,
    sandbox,
    dataDir,
    lines: () => written.map((line) => JSON.parse(line)),
    call: async (...args) => {
      for (;;) {
        const answer = await send(...args)
        // A busy machine took more than a second from reading to sending: nothing was sent.
        const isTooSlow = answer.body.detail?.startsWith('The registrar answers so slowly')
        if (options.clock || !isTooSlow) return answer
      }
    },
    sessionOf: tokenOf,
    commands,
    steps: () => commands().filter((each, at, all) => each !== 'dns.gethosts' || all[at - 1] !== each),
    live: (domain = 'example.com') =>
      sandbox.zone(domain).hosts.map((host) => `${host.name} ${host.type} ${host.address} ${host.ttl} ${host.mxPref}`),
    countWaiting: () => readMetric(url, /^zone_writes_waiting (\d+)$/gm),
    close: closeApp,
    [Symbol.asyncDispose]: async () => {
      await closeApp()
      if (!options.sandbox) await sandbox.close()
      if (options.dataDir) return
      await dropDatabaseOf(dataDir)
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** The sum of the samples that match. */
async function readMetric(url: string, samples: RegExp): Promise<number> {
  const headers = { authorization: 'Bearer metrics-token-of-tests' }
  const text = await (await fetch(`${url}/metrics`, { headers })).text()
  const found = [...text.matchAll(samples)]
  if (found.length === 0) throw new Error(`no sample matches ${samples}`)
  return found.reduce((sum, [, value]) => sum + Number(value), 0)
}

const renameList = (body: { changes?: unknown }) =>
  Array.isArray(body.changes) ? { ...body, changes: undefined, change_list: body.changes } : body

// The services of a test file have the same users and the same secret.
const tokens = new Map<string, Promise<string>>()

/** A session token that no other test has. */
export async function logIn(url: string, username: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password }),
  })
  return z.object({ access_token: z.string() }).parse(await answer.json()).access_token
}
