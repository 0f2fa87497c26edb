// Durable storage: atomic files, the lock of a data directory, migrations, PostgreSQL, backup and restore.

export { allEnded, BackgroundTask } from './background-task.ts'
export type { ArchivedAccounts, ArchivedService, ArchivedStores, DatabaseStores } from './backup/archived-service.ts'
export { type BackupBlobs, insertRows, type Row, type SqlTable, writeRows } from './backup/archived-service.ts'
export { readBackupTimes, runDataCommand } from './backup-commands.ts'
export * from './clock.ts'
export { announceBackup, BackupWatch, lockDataDir, openDataDir } from './data-dir-lock.ts'
export { createDirectory, ensurePrivateFile, fsyncDirectory, updateFile } from './durable-files.ts'
export * from './errors.ts'
export { type CommandLine, type Progress, runMaintenance } from './maintenance-command.ts'
export {
  type BlobRef,
  findFault,
  type OpenBlob,
  openBlobFile,
  openBytes,
  piecesOf,
  stampOf,
  verifiedPieces,
} from './open-blob.ts'
export type { PostgresOptions } from './postgres/connections.ts'
export { Postgres } from './postgres/postgres.ts'
export * from './sql/sql.ts'
export { SqliteSql } from './sql/sqlite.ts'
