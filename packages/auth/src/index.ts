export { callerOf } from './access-control.ts'
export type { ApiTokens } from './api-tokens/api-tokens.ts'
export { authTables, exportUsers, importUsers, readAuthFolder } from './auth-backup.ts'
export {
  allowsDomain,
  allowsPath,
  Domains,
  Folders,
  isInNetworks,
  Network,
  type RecordLimit,
  type Rrset,
  writableTypes,
} from './limits.ts'
export type { HashQueue } from './login/password.ts'
export { type Auth, openAuth, openAuthFile } from './open-auth.ts'
export { auth } from './plugin.ts'
export {
  type Caller,
  findExcess,
  hasRole,
  limitsOf,
  mayReadRrset,
  mayWriteRrset,
  onlyProposes,
  type Rights,
  refuse,
  requireRrsetRead,
  requireRrsetWrites,
  requireWithinRecords,
} from './rights.ts'
export { exampleSecret } from './sessions/jwt-secret.ts'
export { authConfig, authSettings, checkAuthSettings } from './settings.ts'
export { authMigrations } from './tables.ts'
export type { Users } from './users/user.ts'
