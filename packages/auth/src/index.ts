export type { ApiTokens } from './api-tokens/api-tokens.ts'
export { Network } from './api-tokens/networks.ts'
export {
  mayReadRrset,
  mayWriteRrset,
  outsideRecords,
  type Rrset,
  requireRrsetRead,
  requireRrsetWrites,
  requireWithinRecords,
} from './api-tokens/permissions.ts'
export { namesRrset, type RecordLimit } from './api-tokens/record-limits.ts'
export type { TokenRequest } from './api-tokens/stored-token.ts'
export { allowsDomain, type Caller, Role } from './authorization.ts'
export { callerOf } from './caller.ts'
export type { HashQueue } from './login/hash-queue.ts'
export { type Auth, openAuth } from './open-auth.ts'
export { type AuthOptions, auth } from './plugin.ts'
export { exportAuthFiles, importAuthFiles } from './postgres/auth-files.ts'
export { authMigrations } from './postgres/auth-migrations.ts'
export { exampleSecret } from './sessions/jwt-secret.ts'
export { authConfig, authSettings, requireSharedSecret } from './settings.ts'
export type { Users } from './users/users.ts'
