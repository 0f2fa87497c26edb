import { integerSetting } from '@domains-and-files/http'
import { z } from 'zod'
import { maxPasswordLength } from './login/password.ts'
import { exampleSecret, minSecretBytes } from './sessions/jwt-secret.ts'
import { Username } from './users/user.ts'

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
}

type AuthSettings = z.output<z.ZodObject<typeof authSettings>> & { DATA_DIR: string }

export type AuthConfig = ReturnType<typeof authConfig>

/** The part `auth` of a service's config. */
export const authConfig = (settings: AuthSettings) => ({
  secret: settings.JWT_SECRET,
  previousSecret: settings.JWT_SECRET_PREVIOUS,
  tokenTtl: settings.TOKEN_TTL,
  usersFile: settings.USERS_FILE ?? `${settings.DATA_DIR}/users.json`,
  adminUsername: settings.ADMIN_USERNAME,
  adminPassword: settings.ADMIN_PASSWORD,
})

/** Rejects DATABASE_URL without JWT_SECRET: replicas share the secret, so none is generated. */
export function requireSharedSecret(
  settings: Pick<AuthSettings, 'JWT_SECRET'> & { DATABASE_URL?: string | undefined },
  context: z.core.$RefinementCtx,
) {
  if (!settings.DATABASE_URL || settings.JWT_SECRET) return
  const message = 'is required with DATABASE_URL: the same 32 random bytes or more on every replica'
  context.addIssue({ code: 'custom', path: ['JWT_SECRET'], message })
}
