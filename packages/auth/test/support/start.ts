import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { type App, createApp, createLogger } from '@domains-and-files/http'
import type { Postgres } from '@domains-and-files/persistence'
import type { ServiceName } from '../../src/api-tokens/token-format.ts'
import { type Auth, auth, openAuth } from '../../src/index.ts'
import type { LoginLimits } from '../../src/login/login-limit.ts'
import { hashPassword } from '../../src/login/password.ts'
import type { AuthConfig } from '../../src/settings.ts'
import { SqlUsers } from '../../src/users/sql-users.ts'
import { type User, UserList } from '../../src/users/user.ts'
import { makeDatabase } from './database.ts'

export const secret = 'a secret of the tests, 32 bytes or more'
export const weak = { memory: 8, passes: 1, lanes: 1 }

export async function makeFolder() {
  const path = await mkdtemp(join(tmpdir(), 'auth-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export async function makeUser(username: string, more: Partial<User> = {}): Promise<User> {
  return {
    username,
    role: 'viewer',
    password: await hashPassword(`${username}'s words`, weak),
    ...more,
  }
}

export const readUsers = (file: string): User[] => UserList.parse(JSON.parse(readFileSync(file, 'utf8'))).users

export const writeUsers = (file: string, users: unknown[]) => writeFile(file, JSON.stringify({ users }))

interface Call extends RequestInit {
  token?: string
  headers?: Record<string, string>
}

interface StartOptions extends Partial<AuthConfig>, Partial<Pick<Auth, 'verify' | 'hashes'>> {
  audience?: ServiceName
  database?: Postgres
  loginLimits?: LoginLimits
  /** Routes registered before the plugin. */
  early?: (app: App) => void
  routes?: (app: App) => void
  trustProxy?: boolean
}

/** As `start`, with users, API tokens and failed logins in PostgreSQL. */
export function startReplica(database: Postgres, options: StartOptions = {}) {
  return start({ ...options, database })
}

/** Starts the service of a test in each form: users in a file, or in PostgreSQL, with two replicas. */
export const forms: [string, (options?: StartOptions) => Promise<Replicas>][] = [
  [
    'a users file',
    async (options) => {
      const service = await start(options)
      return Object.assign(service, { other: service })
    },
  ],
  [
    'PostgreSQL',
    async (options) => {
      const { database, ...rest } = await makeDatabase()
      const service = await startReplica(database, options)
      const other = await startReplica(database, options)
      await new SqlUsers(database).update(() => service.people)
      const dispose = async () => {
        await service[Symbol.asyncDispose]()
        await other[Symbol.asyncDispose]()
        await rest[Symbol.asyncDispose]()
      }
      return { ...service, other, [Symbol.asyncDispose]: dispose }
    },
  ],
]

type Service = Awaited<ReturnType<typeof start>>
type Replicas = Service & { other: Service }

/** The plugin in an app on a real socket, with the users vera (viewer), edda (editor) and adam (admin). */
export async function start(options: StartOptions = {}) {
  const { early, routes, trustProxy = false, verify, hashes, audience, ...more } = options
  const { database, loginLimits, ...config } = more
  const folder = await makeFolder()
  const file = join(folder.path, 'users.json')
  const people = [
    await makeUser('vera', { domains: ['example.com', '*.co.uk'] }),
    await makeUser('edda', { role: 'editor' }),
    await makeUser('adam', { role: 'admin' }),
  ]
  await writeUsers(file, people)
  if (database) await new SqlUsers(database).update(() => people)
  const clock = { ms: Date.parse('2026-11-20T19:20:00.500Z') }
  const lines: string[] = []
  const log = createLogger({ name: 'domain-service', level: 'info' }, collect(lines))
  const opened = await openAuth(
    { ...authConfigOf(file), dataDir: folder.path, ...config },
    { audience: audience ?? 'domain-service', log, database, loginLimits, now: () => clock.ms },
  )
  const app = await createApp({ ...appOptions, log, trustProxy, metrics: undefined }, async (app) => {
    early?.(app)
    await app.register(auth, { ...opened, ...(verify && { verify }), ...(hashes && { hashes }) })
    app.get('/open', { config: { access: 'public' } }, async () => 'open')
    app.get('/careless', { config: { access: 'public' } }, async ({ caller }) => caller)
    app.get('/view', { config: { access: 'viewer' } }, async ({ caller }) => caller)
    app.put('/edit', { config: { access: 'editor' } }, async ({ caller }) => caller)
    app.get('/rule', { config: { access: 'admin' } }, async ({ caller }) => caller)
    routes?.(app)
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })

  const call = async (path: string, { token, ...init }: Call = {}) => {
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...init.headers }
    const response = await fetch(url + path, { ...init, headers })
    const text = await response.text()
    const body = /^[[{]/.test(text) ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, code: body.code, body }
  }
  const login = (username: string, password = `${username}'s words`, from?: string) =>
    call('/api/auth/login', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(from !== undefined && { 'x-forwarded-for': from }),
      },
      body: JSON.stringify({ username, password }),
    })
  const createToken = async (
    username: string,
    request: Record<string, unknown> = {},
  ): Promise<{ id: string; token: string }> => {
    const { body } = await call('/api/tokens', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: `token ${crypto.randomUUID()}`, ...request }),
      token: await tokenOf(username),
    })
    return body
  }
  const tokenOf = async (username: string): Promise<string> => (await login(username)).body.access_token
  const send = (method: string, path: string, body?: unknown, token?: string) =>
    call(path, {
      method,
      ...(body !== undefined && {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
      ...(token !== undefined && { token }),
    })
  return {
    url,
    send,
    file,
    folder: folder.path,
    people,
    clock,
    ...opened,
    lines: () => lines.map((line): Record<string, unknown> => JSON.parse(line)),
    call,
    login,
    tokenOf,
    createToken,
    [Symbol.asyncDispose]: async () => {
      await app.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const authConfigOf = (usersFile: string): Omit<AuthConfig, 'dataDir'> => ({
  production: false,
  jwtSecret: secret,
  tokenTtl: 3600,
  usersFile,
  passwordLogin: true,
  oidc: undefined,
})

const appOptions = {
  about: { title: 'Test service', version: '1.2.3', description: 'a test' },
  corsOrigin: [],
  // A busy machine must not shed the requests of a test.
  maxQueueMs: 60_000,
  maxLoopDelayMs: 60_000,
  health: () => ({ checks: {} }),
}

const collect = (lines: string[]) =>
  new Writable({
    write(chunk, _encoding, done) {
      lines.push(...String(chunk).trim().split('\n'))
      done()
    },
  })

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

export const readClaims = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

interface Forgery {
  header?: object
  claims?: object
  key?: string
  hash?: string
}

/** The token with changed header and claims, signed again; by default with the right key. */
export function forge(token: string, { header, claims, key = secret, hash = 'sha256' }: Forgery) {
  const text = `${encode({ alg: 'HS256', typ: 'JWT', ...header })}.${encode({ ...readClaims(token), ...claims })}`
  return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`
}
