import { join } from 'node:path'
import { type Program, start } from './program.ts'
import { cores } from './settings.ts'

const password = 'measured again and again'
const secret = 'signs the tokens of what is measured, and nothing else'

/** One of our services, with a token of its admin. */
export interface Service extends Program {
  token: string
}

/** The memory arena of malloc, as in the services' images. */
export const memory = { MALLOC_ARENA_MAX: '1' }

/** The login body of the only user. */
export const login = JSON.stringify({ username: 'bench', password })

/** The static service in production, with its access log unless `env` says otherwise. */
export async function startStatic(folder: string, env: Record<string, string> = {}, core?: number) {
  return startService({ name: 'static-service', folder, env, core })
}

/** The domain service and its registrar. */
export async function startDomains(
  folder: string,
  { delayMs, env = {} }: { delayMs: number; env?: Record<string, string> },
) {
  const registrar = await startRegistrar(folder, delayMs)
  const service = await startDomainService(folder, registrar, env)
  return {
    registrar,
    service,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await registrar[Symbol.asyncDispose]()
    },
  }
}

/** The sandbox of the registrar, on the load's core. */
export const startRegistrar = (folder: string, delayMs: number) =>
  start({
    name: 'registrar-sandbox',
    run: () => [process.execPath, mainOf('registrar-sandbox')],
    folder,
    core: cores.load,
    env: { SANDBOX_RATE: 'off', SANDBOX_DELAY_MS: String(delayMs), LOG_LEVEL: 'warn' },
    health: '/health',
  })

export const startDomainService = (folder: string, registrar: Program, env: Record<string, string> = {}) =>
  startService({
    name: 'domain-service',
    folder,
    env: {
      REGISTRAR_URL: `${registrar.url}/xml.response`,
      REGISTRAR_API_USER: account.ApiUser,
      REGISTRAR_API_KEY: account.ApiKey,
      REGISTRAR_CLIENT_IP: account.ClientIp,
      REGISTRAR_RATE: '9999999/minute',
      ...env,
    },
  })

/** Credentials for the sandbox, sent with each command. */
export const account = {
  ApiUser: 'sandbox',
  ApiKey: 'sandbox-key-for-development-only',
  UserName: 'sandbox',
  ClientIp: '127.0.0.1',
}

export const bearer = ({ token }: Service) => ({ authorization: `Bearer ${token}` })

/** Stores one file. */
export async function upload(service: Service, path: string, bytes: Uint8Array<ArrayBuffer>) {
  const form = new FormData()
  form.set('path', path)
  form.set('file', new Blob([bytes]), 'file')
  const answer = await fetch(`${service.url}/api/files/upload`, {
    method: 'POST',
    headers: bearer(service),
    body: form,
  })
  if (!answer.ok) throw new Error(`upload: ${answer.status} ${await answer.text()}`)
}

interface StartOptions {
  name: string
  folder: string
  env: Record<string, string>
  core?: number | undefined
}

async function startService({ name, folder, env, core }: StartOptions): Promise<Service> {
  const program = await start({
    name,
    run: () => [process.execPath, mainOf(name)],
    folder,
    core,
    env: {
      DATA_DIR: join(folder, name),
      ...memory,
      NODE_COMPILE_CACHE: join(packages, name, 'node_modules/.cache/compiled'),
      JWT_SECRET: secret,
      ADMIN_USERNAME: 'bench',
      ADMIN_PASSWORD: password,
      ...env,
    },
    health: '/health',
  })
  return { ...program, token: await logIn(program.url) }
}

async function logIn(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: login,
  })
  const response: unknown = await answer.json()
  if (typeof response !== 'object' || !response || !('access_token' in response)) {
    throw new Error(`login: ${answer.status}`)
  }
  return String(response.access_token)
}

const packages = join(import.meta.dirname, '../../packages')

const mainOf = (name: string) => join(packages, name, 'dist/main.js')
