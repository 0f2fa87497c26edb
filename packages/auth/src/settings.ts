import { integerSetting } from '@domains-and-files/http'
import { z } from 'zod'
import { IssuerUrl } from './issuer-url.ts'
import { maxPasswordLength } from './login/password.ts'
import { groupRights } from './oidc/group-rights.ts'
import { exampleSecret, minSecretBytes } from './sessions/jwt-secret.ts'
import { Username } from './users/user.ts'

const claim = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'must be the name of a claim')

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
  ADMIN_USERNAME: Username.optional(),
  ADMIN_PASSWORD: z.string().min(1).max(maxPasswordLength).optional(),
  PASSWORD_LOGIN: z.stringbool({ error: 'must be true or false' }).default(true),
  PUBLIC_BASE_URL: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
  OIDC_ISSUER: IssuerUrl.optional(),
  OIDC_CLIENT_ID: z.string().optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  OIDC_SCOPES: z
    .string()
    .default('openid profile email groups')
    .refine((text) => text.split(/\s+/).includes('openid'), 'must contain openid'),
  OIDC_USERNAME_CLAIM: claim.default('preferred_username'),
  OIDC_GROUPS_CLAIM: claim.default('groups'),
  OIDC_ROLES: groupRights.optional(),
  OIDC_NAME: z.string().max(100).default('single sign-on'),
}

type AuthSettings = z.output<z.ZodObject<typeof authSettings>> & {
  DATA_DIR: string
  CORS_ORIGIN: string[]
}

export type AuthConfig = ReturnType<typeof authConfig>

export const authConfig = (settings: AuthSettings) => ({
  secret: settings.JWT_SECRET,
  previousSecret: settings.JWT_SECRET_PREVIOUS,
  tokenTtl: settings.TOKEN_TTL,
  usersFile: settings.USERS_FILE ?? `${settings.DATA_DIR}/users.json`,
  adminUsername: settings.ADMIN_USERNAME,
  adminPassword: settings.ADMIN_PASSWORD,
  isPasswordLoginOn: settings.PASSWORD_LOGIN,
  oidc: oidcConfig(settings),
})

export type OidcConfig = NonNullable<ReturnType<typeof oidcConfig>>

// `checkAuthSettings` has rejected an issuer without its required settings.
function oidcConfig(settings: AuthSettings) {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_ROLES: roles } = settings
  const { PUBLIC_BASE_URL: baseUrl } = settings
  if (!issuer || !clientId || !roles || !baseUrl) return undefined
  return {
    ...{ issuer, clientId, roles, baseUrl },
    clientSecret: settings.OIDC_CLIENT_SECRET,
    scopes: settings.OIDC_SCOPES,
    usernameClaim: settings.OIDC_USERNAME_CLAIM,
    groupsClaim: settings.OIDC_GROUPS_CLAIM,
    /** Display name of the provider, for a button. */
    name: settings.OIDC_NAME,
    /** Origins that a login may return to, beside loopback addresses. */
    returnOrigins: settings.CORS_ORIGIN,
  }
}

/**
 * Rejects DATABASE_URL without JWT_SECRET, as replicas share the secret, so none is generated; and an incomplete single
 * sign-on.
 */
export function checkAuthSettings(
  settings: Omit<AuthSettings, 'DATA_DIR' | 'CORS_ORIGIN'> & { DATABASE_URL?: string | undefined },
  context: z.core.$RefinementCtx,
) {
  const refuse = (setting: string, message: string) =>
    context.addIssue({ code: 'custom', path: [setting], message })
  if (settings.DATABASE_URL && !settings.JWT_SECRET) {
    const need = 'the same 32 random bytes or more on every replica'
    refuse('JWT_SECRET', `is required with DATABASE_URL: ${need}`)
  }
  if (settings.OIDC_ISSUER) {
    for (const name of ['OIDC_CLIENT_ID', 'OIDC_ROLES', 'PUBLIC_BASE_URL'] as const)
      if (!settings[name]) refuse(name, 'is required with OIDC_ISSUER')
  } else if (!settings.PASSWORD_LOGIN) {
    refuse('PASSWORD_LOGIN', 'can be false only with OIDC_ISSUER: nobody could log in')
  }
}
