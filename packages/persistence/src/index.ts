// Durable storage: atomic files, the lock of a data directory, migrations, PostgreSQL, backup and restore.

export type { BackupLayout, BlobSource } from './backup/backup-job.ts'
export { unreadable } from './backup/damage.ts'
export type { KeptFile } from './backup/kept-file.ts'
export type {
  ContentStore,
  DatabaseStore,
  ExportJob,
  ImportJob,
} from './backup/postgres/database-store.ts'
export { Progress } from './backup/progress.ts'
export type { RowContents } from './backup/rows.ts'
export { exportTables, importTables, runDataCommand } from './backup-commands.ts'
export { BackupWatch, lockDataDir, openDataDir } from './data-dir-lock.ts'
export { createDirectory, fsyncDirectory } from './durable-files.ts'
export { DataDirError } from './errors.ts'
export { migrate } from './migrations.ts'
export type { Migrations } from './postgres/migrate-postgres.ts'
export { Postgres, type PostgresOptions } from './postgres/postgres.ts'
export {
  DatabaseFullError,
  DatabaseRefusedError,
  DatabaseUnavailableError,
  explainDatabaseFailure,
  OutcomeUnknownError,
} from './postgres/postgres-errors.ts'
export { Probe } from './postgres/probe.ts'
export type { Transaction } from './postgres/transaction.ts'
export { FileView, updateFile } from './shared-file.ts'
