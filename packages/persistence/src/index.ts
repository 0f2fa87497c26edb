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
export {
  allEnded,
  insertRows,
  readPrivateFiles,
  readTables,
  type SqlTable,
  writeRows,
} from './backup/archive.ts'
export type { Progress } from './backup/progress.ts'
export { readBackupTimes, runDataCommand } from './backup-commands.ts'
export { announceBackup, BackupWatch, lockDataDir, openDataDir } from './data-dir-lock.ts'
export { createDirectory, ensurePrivateFile, fsyncDirectory, updateFile } from './durable-files.ts'
export * from './errors.ts'
export { type CommandLine, runMaintenance } from './maintenance-command.ts'
export { refuseUnfinished } from './postgres/migrate-postgres.ts'
export { Postgres, type PostgresOptions } from './postgres/postgres.ts'
export { Probe } from './postgres/probe.ts'
export type { Transaction } from './postgres/transaction.ts'
export * from './sql/sql.ts'
export { SqliteSql } from './sql/sqlite.ts'
export type { SqliteOptions } from './sql/sqlite-connection.ts'
