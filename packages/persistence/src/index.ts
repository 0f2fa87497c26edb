// The folder that a service must not lose: one process at a time, durable, and what makes a copy of it and puts it back.

export type { Contents, Kept, Layout } from './backup/backup.ts'
export { runDataCommand } from './backup/data-command.ts'
export { BackupWatch, lockFolder } from './data-dir-lock.ts'
export { makeFolder, syncFolder } from './durable-files.ts'
export { FolderRefused } from './errors.ts'
export { migrate } from './migrations.ts'
