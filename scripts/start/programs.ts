import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StartSettings } from './settings.ts'

export interface Program {
  name: string
  port: number
  env: Record<string, string>
}

export interface Admin {
  username: string
  password: string
  /** From the environment: the person who starts it knows the password. */
  isGiven: boolean
}

/** The repository's root. */
export const root = join(import.meta.dirname, '../..')

/** What `npm run setup` has built. */
export const mainOf = (name: string) => join(root, 'packages', name, 'dist/main.js')

/** What a watched program runs. */
export const sourceOf = (name: string) => join(root, 'packages', name, 'src/main.ts')

/** The registrar's real limits slow down the first steps; `SANDBOX_RATE=20/minute,700/hour,8000/day` shows them. */
const developmentRate = '1200/minute'

/** What `npm start` runs, in the order in which it starts. */
export function listPrograms(settings: StartSettings, admin: Admin | undefined): Program[] {
  const { dataDir, portBase, usesSandbox } = settings
  const shared = {
    USERS_FILE: process.env.USERS_FILE || join(dataDir, 'users.json'),
    CORS_ORIGIN: process.env.CORS_ORIGIN || originsAt(portBase - 1),
    ...(admin ? { ADMIN_USERNAME: admin.username, ADMIN_PASSWORD: admin.password } : {}),
  }
  const rate = process.env.SANDBOX_RATE || developmentRate
  const sandbox = {
    name: 'registrar-sandbox',
    port: portBase + 2,
    env: { SANDBOX_FILE: join(dataDir, 'registrar.json'), SANDBOX_RATE: rate },
  }
  const programs = [
    ...(usesSandbox ? [sandbox] : []),
    {
      name: 'domain-service',
      port: portBase,
      env: {
        ...shared,
        ...(usesSandbox ? sandboxAccount(sandbox.port, rate) : {}),
        DATA_DIR: join(dataDir, 'domain-service'),
        // For single sign-on. One from outside is that of the static service.
        PUBLIC_BASE_URL: `http://127.0.0.1:${portBase}`,
      },
    },
    {
      name: 'static-service',
      port: portBase + 1,
      env: {
        ...shared,
        DATA_DIR: join(dataDir, 'static-service'),
        ...(process.env.OIDC_ISSUER && !process.env.PUBLIC_BASE_URL
          ? { PUBLIC_BASE_URL: `http://127.0.0.1:${portBase + 1}` }
          : {}),
      },
    },
    {
      name: 'console',
      port: portBase - 1,
      env: {
        DOMAIN_SERVICE_URL: process.env.DOMAIN_SERVICE_URL || `http://127.0.0.1:${portBase}`,
        STATIC_SERVICE_URL: process.env.STATIC_SERVICE_URL || `http://127.0.0.1:${portBase + 1}`,
      },
    },
  ]
  return programs.filter(({ name }) => existsSync(sourceOf(name)))
}

const originsAt = (port: number) => `http://127.0.0.1:${port},http://localhost:${port}`

const sandboxAccount = (port: number, rate: string) => ({
  SANDBOX_URL: `http://127.0.0.1:${port}/xml.response`,
  REGISTRAR_RATE: process.env.REGISTRAR_RATE || (rate === 'off' ? developmentRate : rate),
})

/** Users that a restore has put beside the data of a service, but that it does not use. */
export const unusedUsers = (programs: Program[]): string[] =>
  programs.flatMap(({ env: { DATA_DIR, USERS_FILE = '' } }) => {
    const file = DATA_DIR && join(DATA_DIR, 'users.json')
    return file && file !== USERS_FILE && existsSync(file)
      ? `The users in ${file} are not used: copy them to ${USERS_FILE}, or delete that file.`
      : []
  })

/**
 * The admin of the first start: of ADMIN_USERNAME and ADMIN_PASSWORD, else with a random password, which is stored beside
 * the data, so that later starts print it again.
 */
export function readAdmin(dataDir: string, env: NodeJS.ProcessEnv): Admin {
  const username = env.ADMIN_USERNAME || 'admin'
  if (env.ADMIN_PASSWORD) return { username, password: env.ADMIN_PASSWORD, isGiven: true }
  const file = join(dataDir, 'admin-password')
  if (!existsSync(file)) {
    writeFileSync(file, `${randomBytes(12).toString('base64url')}\n`, { mode: 0o600 })
  }
  return { username, password: readFileSync(file, 'utf8').trim(), isGiven: false }
}
