import { type ImportJob, SqliteSql } from '@domains-and-files/persistence'
import { readSnapshot } from '../../catalog/archive.ts'
import { ChangeGroups } from '../../catalog/changes/change-groups.ts'

/** Tables that must be empty before an import: see `catalogMigrations` for those that have a row from the start. */
export const catalogTables = ['files', 'blobs', 'categories', 'versions', 'contents']

/** Copies a SQLite catalog into PostgreSQL, in transactions that an interrupted restore repeats without effect. */
export async function importCatalog(job: ImportJob): Promise<void> {
  const sql = new SqliteSql({ file: job.file, isReadOnly: true })
  const groups = new ChangeGroups({ sql: job.database })
  try {
    await readSnapshot(sql, async (snapshot) => {
      let done = 0
      for await (const files of snapshot.files()) {
        job.signal.throwIfAborted()
        await groups.import({ kind: 'importFiles', files })
        done += files.length
        job.onProgress(done / Math.max(1, snapshot.totals.totalFiles))
      }
      for await (const versions of snapshot.versions()) {
        await groups.import({ kind: 'importVersions', versions })
      }
    })
  } finally {
    await sql.close()
  }
}
