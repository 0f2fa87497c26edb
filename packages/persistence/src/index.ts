// The folder that a service must not lose: one process at a time, durable, and what makes a copy of it and puts it back.

export type { BackupLayout, BlobSource, KeptFile } from './backup/backup.ts'
export { runDataCommand } from './backup/data-command.ts'
export { BackupWatch, lockDataDir } from './data-dir-lock.ts'
export { createDirectory, fsyncDirectory } from './durable-files.ts'
export { DataDirError } from './errors.ts'
export { migrate } from './migrations.ts'
