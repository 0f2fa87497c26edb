export { readmit } from './access-control.ts'
export { archivedAccounts, authMigrations, dataDirOf } from './auth-database.ts'
export {
  Domains,
  Folders,
  isInNetworks,
  Network,
  type RecordLimit,
  type Rrset,
  writableTypes,
} from './limits.ts'
export { type Auth, openAuth } from './open-auth.ts'
export { auth } from './plugin.ts'
export {
  allowsDomain,
  allowsPath,
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
export { authConfig, authRules, authSettings, exampleSecret } from './settings.ts'
export type { Users } from './users/user.ts'
