// The folder that a service must not lose: one process at a time, durable, and what makes a copy of it and puts it back.

export type { Contents, Kept, Layout } from './backup.ts'
export { runDataCommand } from './command.ts'
export { makeFolder, syncFolder } from './durable.ts'
export { BackupWatch, lockFolder } from './lock.ts'
export { migrate } from './migrate.ts'
export { FolderRefused } from './refusal.ts'
