import { open } from 'node:fs/promises'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { ExportJob, Transaction } from '@domains-and-files/persistence'
import { snapshotOf } from '../../catalog/archive.ts'
import { ChangeGroups } from '../../catalog/changes/change-groups.ts'
import { openDatabase } from '../../catalog/sqlite/open-sqlite.ts'

/** Writes the catalog of a snapshot into an empty SQLite catalog, with all counts and its search index; flushed. */
export async function exportCatalog(transaction: Transaction, job: ExportJob): Promise<void> {
  const { file, signal, onProgress } = job
  const snapshot = await snapshotOf(transaction)
  const sql = openDatabase(file)
  try {
    // Flushed once, at the end; a failure removes the whole file.
    sql.database.pragma('journal_mode = delete')
    sql.database.pragma('synchronous = off')
    const groups = new ChangeGroups({ sql })
    let done = 0
    for await (const files of snapshot.files()) {
      await groups.import({ kind: 'importFiles', files })
      done += files.length
      onProgress(done / Math.max(1, snapshot.totals.totalFiles))
      await nextIteration()
      signal.throwIfAborted()
    }
    for await (const versions of snapshot.versions()) {
      await groups.import({ kind: 'importVersions', versions })
    }
  } finally {
    await sql.close()
  }
  await using handle = await open(file, 'r+')
  await handle.chmod(0o600)
  await handle.sync()
}

/** Yields the rows of a query batch by batch. */
export async function* readAll<Row extends object>(
  snapshot: Transaction,
  query: string,
): AsyncGenerator<Row[]> {
  await snapshot.query(`declare rows_to_export no scroll cursor for ${query}`)
  for (;;) {
    const rows = await snapshot.query<Row>(`fetch ${rowsPerFetch} from rows_to_export`)
    if (rows.length === 0) break
    yield rows
  }
  await snapshot.query('close rows_to_export')
}

const rowsPerFetch = 500
