// Durable storage: atomic files, the lock of a data directory, migrations, backup and restore.

export type { BackupLayout, BlobSource, KeptFile } from './backup/backup-job.ts'
export { unreadable } from './backup/damage.ts'
export { runDataCommand } from './backup/data-command.ts'
export { Progress } from './backup/progress.ts'
export type { RowContents } from './backup/rows.ts'
export { BackupWatch, lockDataDir, openDataDir } from './data-dir-lock.ts'
export { createDirectory, fsyncDirectory } from './durable-files.ts'
export { DataDirError } from './errors.ts'
export { migrate } from './migrations.ts'
export { FileView, updateFile } from './shared-file.ts'
