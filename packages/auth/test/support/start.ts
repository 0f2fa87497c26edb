import { createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify, { type FastifyInstance, type FastifyTypeProvider } from 'fastify'
import type { z } from 'zod'
import { type AuthOptions, auth, callerOf, Users } from '../../src/index.ts'
import { hashPassword } from '../../src/login/password.ts'
import type { User } from '../../src/users/users-file.ts'

export const secret = 'a secret of the tests, 32 bytes or more'
export const weak = { memory: 8, passes: 1, lanes: 1 }

class Failure extends Error {
  readonly statusCode: number
  readonly code: string
  readonly headers: Record<string, string>

  constructor(status: number, code: string, detail: string, headers = {}) {
    super(detail)
    this.statusCode = status
    this.code = code
    this.headers = headers
  }
}

export const refuse: AuthOptions['refuse'] = (...told) => new Failure(...told)

/** As fastify-type-provider-zod has it: proof that the plugin fits an app with a type provider. */
interface ZodTypes extends FastifyTypeProvider {
  validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown
  serializer: this['schema'] extends z.ZodType ? z.input<this['schema']> : unknown
}

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

export const writeUsers = (file: string, users: unknown[]) =>
  writeFile(file, JSON.stringify({ users }))

interface StartOptions extends Partial<AuthOptions> {
  /** Routes made before the plugin is registered. */
  early?: (app: FastifyInstance) => void
  routes?: (app: FastifyInstance) => void
}

/** The real plugin in a bare app on a real socket, with the users vera (viewer), edda (editor) and adam (admin). */
export async function start({ early, routes, ...options }: StartOptions = {}) {
  const folder = await makeFolder()
  const file = join(folder.path, 'users.json')
  const people = [
    await makeUser('vera', { domains: ['example.com', '*.co.uk'] }),
    await makeUser('edda', { role: 'editor' }),
    await makeUser('adam', { role: 'admin' }),
  ]
  await writeUsers(file, people)
  const reports: string[] = []
  const users = await Users.open(file, (error) => reports.push(error.message))
  const clock = { ms: Date.parse('2026-11-20T19:20:00.500Z') }

  const app = Fastify().withTypeProvider<ZodTypes>()
  app.setValidatorCompiler<z.ZodType>(({ schema }) => (value) => {
    const { data, error } = schema.safeParse(value)
    return error ? { error: refuse(400, 'validation_failed', error.message) } : { value: data }
  })
  app.setSerializerCompiler<z.ZodType>(
    ({ schema }) =>
      (value) =>
        JSON.stringify(schema.parse(value)),
  )
  app.setErrorHandler((error: Failure, _request, reply) =>
    reply
      .code(error.statusCode ?? 500)
      .headers(error.headers ?? {})
      .send({ code: error.code ?? 'internal_error', detail: error.message }),
  )
  early?.(app as unknown as FastifyInstance) // The routes of tests need no zod types.
  const given = { secret, audience: 'test-service', tokenTtl: 3600, users, refuse }
  await app.register(auth, { ...given, now: () => clock.ms, ...options })
  app.get('/open', { config: { access: 'public' } }, async () => 'open')
  app.get('/careless', { config: { access: 'public' } }, async (request) => callerOf(request))
  app.get('/view', { config: { access: 'viewer' } }, async (request) => callerOf(request))
  app.put('/edit', { config: { access: 'editor' } }, async (request) => callerOf(request))
  app.get('/rule', { config: { access: 'admin' } }, async (request) => callerOf(request))
  routes?.(app as unknown as FastifyInstance)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })

  const call = async (path: string, { token, ...init }: RequestInit & { token?: string } = {}) => {
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...init.headers }
    const response = await fetch(url + path, { ...init, headers })
    const text = await response.text()
    const body = text.startsWith('{') ? JSON.parse(text) : text
    return { status: response.status, headers: response.headers, code: body.code, body }
  }
  const login = (username: string, password = `${username}'s words`) =>
    call('/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password }),
    })
  const tokenOf = async (username: string): Promise<string> =>
    (await login(username)).body.access_token
  return {
    url,
    file,
    people,
    reports,
    clock,
    call,
    login,
    tokenOf,
    [Symbol.asyncDispose]: async () => {
      await app.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

export const readClaims = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

interface Forgery {
  header?: object
  claims?: object
  key?: string
  hash?: string
}

/** The token with other headers and claims, signed anew; by default with the right key. */
export function forge(token: string, { header, claims, key = secret, hash = 'sha256' }: Forgery) {
  const text = `${encode({ alg: 'HS256', typ: 'JWT', ...header })}.${encode({ ...readClaims(token), ...claims })}`
  return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`
}
