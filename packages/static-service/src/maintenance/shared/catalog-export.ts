import { open } from 'node:fs/promises'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { ExportJob, Transaction } from '@domains-and-files/persistence'
import { FreedContents } from '../../catalog/file-table.ts'
import { openDatabase } from '../../catalog/sqlite/database.ts'
import { FileRows } from '../../catalog/sqlite/file-rows.ts'
import type { FileRow, VersionRow } from '../../files/file-record.ts'

/** Writes the catalog of a snapshot into an empty SQLite catalog, with all counts and its search index; flushed. */
export async function exportCatalog(snapshot: Transaction, job: ExportJob): Promise<void> {
  const { file, signal, onProgress } = job
  const [total] = await snapshot.query<{ files: number }>(
    'select count(*) files from static_service.files',
  )
  const db = openDatabase(file)
  try {
    // Flushed once, at the end; a failure removes the whole file.
    db.pragma('journal_mode = delete')
    db.pragma('synchronous = off')
    const rows = new FileRows(db)
    const freed = new FreedContents()
    const add = db.transaction((batch: FileRow[]) => {
      for (const row of batch) {
        if (!rows.add(row, freed)) throw new Error(`${row.path} is below a file`)
      }
    })
    let done = 0
    for await (const batch of readFiles(snapshot)) {
      add(batch)
      done += batch.length
      onProgress(done / Math.max(1, total?.files ?? 0))
      await nextIteration()
      signal.throwIfAborted()
    }
    const insert = db.prepare<[VersionRow]>(
      'insert into versions values (@id, @version, @changelog, @createdBy, @createdAt)',
    )
    for await (const batch of readVersions(snapshot)) for (const row of batch) insert.run(row)
  } finally {
    db.close()
  }
  await using handle = await open(file, 'r+')
  await handle.chmod(0o600)
  await handle.sync()
}

const readFiles = (snapshot: Transaction) =>
  readAll<FileRow>(
    snapshot,
    `select path, name, digest, size, content_type "contentType", category,
       uploaded_by "uploadedBy", created_at "createdAt", updated_at "updatedAt"
     from static_service.files order by path`,
  )

const readVersions = (snapshot: Transaction) =>
  readAll<VersionRow>(
    snapshot,
    `select id, version, changelog, created_by "createdBy", created_at "createdAt"
     from static_service.versions order by id`,
  )

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
