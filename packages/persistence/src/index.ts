// Durable storage: atomic files, the lock of a data directory, migrations, PostgreSQL, backup and restore.

export type {
  ArchivedService,
  BackupBlobs,
  BackupSource,
  DatabaseTarget,
  DataPlaces,
  PrivateFiles,
  ReadableBlob,
  RestoreTarget,
  Row,
  Table,
} from './backup/archive.ts'
export { allEnded, readPrivateFiles } from './backup/archive.ts'
export type { CommandLine } from './backup/data-command.ts'
export { insertRows, readTables, type SqlTable, writeRows } from './backup/sql-tables.ts'
export { Progress, readBackupTimes, runDataCommand } from './backup-commands.ts'
export { announceBackup, BackupWatch, lockDataDir, openDataDir } from './data-dir-lock.ts'
export { createDirectory, ensurePrivateFile, fsyncDirectory, updateFile } from './durable-files.ts'
export {
  DatabaseFullError,
  DatabaseRefusedError,
  DatabaseUnavailableError,
  DataDirError,
  explainDatabaseFailure,
  OutcomeUnknownError,
  storageFailure,
  unreadable,
} from './errors.ts'
export { refuseUnfinished } from './postgres/migrate-postgres.ts'
export { Postgres, type PostgresOptions } from './postgres/postgres.ts'
export { Probe } from './postgres/probe.ts'
export type { Transaction } from './postgres/transaction.ts'
export {
  bytes,
  type Dialect,
  dialect,
  eachRow,
  forUpdate,
  forUpdateSkipLocked,
  identity,
  int8,
  isUniqueViolation,
  join,
  list,
  lockOf,
  type Migrations,
  name,
  now,
  render,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
  strict,
} from './sql/sql.ts'
export { SqliteSql } from './sql/sqlite.ts'
export type { SqliteOptions } from './sql/sqlite-connection.ts'
