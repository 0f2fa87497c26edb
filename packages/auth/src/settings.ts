import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  booleanSetting,
  integerSetting,
  type Named,
  named,
  StartRefusedError,
  urlSetting,
} from '@domains-and-files/http'
import { updateFile } from '@domains-and-files/persistence'
import { z } from 'zod'
import { Password } from './login/password.ts'
import { groupRights } from './oidc/group-rights.ts'
import { NewUser } from './users/user.ts'

/** The secret that earlier versions of `.env.example` contained: public, so it is refused everywhere. */
export const exampleSecret = 'change-me-change-me-change-me-change-me'

/** Minimum key size for HS256 (RFC 7518, 3.2). */
export const minSecretBytes = 32

/** Whether a URL names this machine, where plain http is as private as https. */
export const isLoopback = ({ hostname }: URL) => /^(?:127\.0\.0\.1|\[::1\]|localhost)$/.test(hostname)

/** Whether traffic to this URL is safe from others: https, or loopback. */
export const isPrivateUrl = (url: URL) => url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))

/** The issuer of an OpenID provider: a URL without query and fragment (OpenID Connect Discovery 1.0, 2). */
export const IssuerUrl = z
  .string()
  .max(500)
  .refine(
    (text) => URL.canParse(text) && isPrivateUrl(new URL(text)) && !/[?#@]/.test(text),
    'must be an https URL, or http on this machine such as http://127.0.0.1:8080',
  )

/** The settings of this package, as a zod shape to spread into a service's schema. */
export const authSettings = {
  JWT_SECRET: z.string().optional(),
  JWT_SECRET_PREVIOUS: z
    .string()
    .refine((secret) => Buffer.byteLength(secret) >= minSecretBytes && secret !== exampleSecret, {
      message: `must be the last JWT_SECRET, of at least ${minSecretBytes} bytes`,
    })
    .optional(),
  TOKEN_TTL: integerSetting(1, 604_800).default(3600),
  USERS_FILE: z.string().optional(),
  ADMIN_USERNAME: NewUser.shape.username.optional(),
  ADMIN_PASSWORD: Password.min(1).optional(),
  PASSWORD_LOGIN: booleanSetting.default(true),
  PUBLIC_BASE_URL: urlSetting.transform((url) => url.replace(/\/+$/, '')).optional(),
  OIDC_ISSUER: IssuerUrl.optional(),
  OIDC_CLIENT_ID: z.string().optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  OIDC_SCOPES: z.string().default('openid profile email groups'),
  OIDC_USERNAME_CLAIM: z.string().default('preferred_username'),
  OIDC_GROUPS_CLAIM: z.string().default('groups'),
  OIDC_ROLES: groupRights.optional(),
  OIDC_NAME: z.string().max(100).default('single sign-on'),
}

type AuthSettings = z.output<z.ZodObject<typeof authSettings>> & {
  DATA_DIR: string
  CORS_ORIGIN: string[]
}

/** What `openAuth` reads of a service's config. */
export type AuthConfig = ReturnType<typeof authConfig> & { production: boolean } & Pick<
    Named<AuthSettings>,
    'jwtSecret' | 'jwtSecretPrevious' | 'tokenTtl' | 'passwordLogin' | 'adminUsername' | 'adminPassword' | 'dataDir'
  >

/** What a service's config has of `authSettings` beside their values. */
export const authConfig = (settings: AuthSettings) => ({
  usersFile: settings.USERS_FILE ?? `${settings.DATA_DIR}/users.json`,
  oidc: oidcConfig(settings),
})

export type OidcConfig = NonNullable<ReturnType<typeof oidcConfig>>

// `authRules` have rejected an issuer without its required settings.
function oidcConfig(settings: AuthSettings) {
  const { issuer, clientId, roles, ...options } = named(settings, 'OIDC_')
  const { PUBLIC_BASE_URL: baseUrl, CORS_ORIGIN: returnOrigins } = settings
  if (!issuer || !clientId || !roles || !baseUrl) return undefined
  return { issuer, clientId, roles, baseUrl, returnOrigins, ...options }
}

/**
 * Rejects DATABASE_URL without JWT_SECRET, as replicas share the secret, so none is generated; and an incomplete single
 * sign-on.
 */
export function authRules(settings: AuthSettings & { DATABASE_URL?: string | undefined }) {
  const { DATABASE_URL, JWT_SECRET, OIDC_ISSUER, PASSWORD_LOGIN } = settings
  const missing = (value: unknown) => OIDC_ISSUER && !value && 'is required with OIDC_ISSUER'
  return {
    JWT_SECRET:
      DATABASE_URL && !JWT_SECRET && 'is required with DATABASE_URL: the same 32 random bytes or more on every replica',
    OIDC_CLIENT_ID: missing(settings.OIDC_CLIENT_ID),
    OIDC_ROLES: missing(settings.OIDC_ROLES),
    PUBLIC_BASE_URL: missing(settings.PUBLIC_BASE_URL),
    PASSWORD_LOGIN: !OIDC_ISSUER && !PASSWORD_LOGIN && 'can be false only with OIDC_ISSUER: nobody could log in',
  }
}

/**
 * The secret that signs session tokens. Outside production a missing one is generated and stored in the data directory,
 * so that sessions survive a restart; a short one is accepted, and `warn` gets one sentence.
 * @throws {StartRefusedError} when it is the public example; in production also when it is missing or short.
 */
export async function resolveJwtSecret(
  { jwtSecret: secret, production, dataDir }: Pick<AuthConfig, 'jwtSecret' | 'production' | 'dataDir'>,
  warn: (message: string) => void = console.error,
): Promise<string> {
  if (!secret && !production) return storedSecret(join(dataDir, 'jwt.secret'))
  const refuse = (fault: string) => new StartRefusedError(`JWT_SECRET ${fault}: set it to at least 32 random bytes.`)
  if (!secret) throw refuse('is missing')
  if (secret === exampleSecret) throw refuse('is a published example')
  if (Buffer.byteLength(secret) >= minSecretBytes) return secret
  const fault = `has fewer than ${minSecretBytes} bytes`
  if (production) throw refuse(fault)
  warn(`JWT_SECRET ${fault}; in production this service would not start.`)
  return secret
}

async function storedSecret(file: string): Promise<string> {
  // Created under a lock: services that start together share one secret.
  if (!existsSync(file))
    await updateFile(file, (text) => text ?? `${randomBytes(minSecretBytes).toString('base64url')}\n`)
  const secret = (await readFile(file, 'utf8')).trim()
  if (Buffer.byteLength(secret) >= minSecretBytes) return secret
  throw new StartRefusedError(`The secret in ${file} is too short: delete the file to have a new one generated.`)
}
