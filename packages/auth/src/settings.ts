import { z } from 'zod'
import { longestPassword } from './login/password.ts'
import { Username } from './users/users-file.ts'

/** The settings of this package, as zod rules to spread into a service's own schema. */
export const authSettings = {
  JWT_SECRET: z.string().optional(),
  TOKEN_TTL: z.coerce.number().int().min(1).max(604_800).default(3600),
  USERS_FILE: z.string().optional(),
  ADMIN_USERNAME: Username.optional(),
  ADMIN_PASSWORD: z.string().min(1).max(longestPassword).optional(),
}
