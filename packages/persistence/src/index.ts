// Durable storage: atomic files, the lock of a data directory, migrations, backup and restore.

export { writeFileAtomic } from './atomic-file.ts'
export type { BackupLayout, BlobSource, KeptFile } from './backup/backup.ts'
export { runDataCommand } from './backup/data-command.ts'
export { BackupWatch, lockDataDir, openDataDir } from './data-dir-lock.ts'
export { createDirectory, fsyncDirectory } from './durable-files.ts'
export { DataDirError } from './errors.ts'
export { LockBusyError, withFileLock } from './file-lock.ts'
export { migrate } from './migrations.ts'
