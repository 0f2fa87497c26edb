import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeNew } from '../../durable-files.ts'
import type { Transaction } from '../../postgres/transaction.ts'
import type { BackupJob } from '../backup-job.ts'
import type { BackupSource } from '../backup-source.ts'
import type { DatabaseStore } from './database-store.ts'

/** PostgreSQL, as of a snapshot, and the contents that it refers to. */
export function databaseSource(
  { signal, progress }: BackupJob,
  { migrateFile, exportDatabase, exportFiles, contents }: DatabaseStore,
  snapshot: Transaction,
): BackupSource {
  let rows: string | undefined
  return {
    async copyDatabase(file) {
      migrateFile(file)
      await exportDatabase(snapshot, { file, signal, onProgress: progress.database })
      await using handle = await open(file, 'r+')
      await handle.chmod(0o600)
      await handle.sync()
    },
    async copySmallFiles(to) {
      const files = Object.entries(await exportFiles(snapshot))
      for (const [name, text] of files) await writeNew(join(to, name), text)
      return files.map(([name]) => name)
    },
    async copyContents(copy) {
      await contents?.export({ ...copy, snapshot, signal, onContent: progress.content })
    },
    async openRows(to, catalog) {
      rows = join(to, 'rows')
      await mkdir(rows, { mode: 0o700 })
      const none = { folder: rows, databases: [] }
      return (await contents?.exportRows({ snapshot, to: rows, catalog })) ?? none
    },
    async removeRows() {
      if (rows !== undefined) await rm(rows, { recursive: true })
    },
  }
}
