import type { ImportJob } from '@domains-and-files/persistence'
import { fold } from '../../catalog/fold.ts'
import { type Database, openReader } from '../../catalog/sqlite/database.ts'

interface Table {
  name: string
  read: string
  /** Takes the rows as a JSON array. */
  insert: string
}

/** Tables that must be empty before an import: see `catalogMigrations` for those that have a row from the start. */
export const catalogTables = ['files', 'blobs', 'categories', 'versions', 'contents']

/** Copies a SQLite catalog into PostgreSQL, in transactions that an interrupted restore does not repeat. */
export async function importCatalog(job: ImportJob): Promise<void> {
  const db = openReader(job.file)
  try {
    const counts = tables.map(({ name }) => countRows(db, name))
    const total = counts.reduce((sum, count) => sum + count, 0)
    let before = 0
    for (const [at, table] of tables.entries()) {
      await importTable(db, table, {
        ...job,
        onRows: (rows) => job.onProgress((before + rows) / Math.max(1, total)),
      })
      before += counts[at] ?? 0
    }
    const stored = db.prepare<[], number>('select size from stored').pluck().get() ?? 0
    await job.database.query(
      'update static_service.catalog set stored_size = $1, revision = greatest(revision, 1)',
      [stored],
    )
  } finally {
    db.close()
  }
}

async function importTable(
  db: Database,
  { name, read, insert }: Table,
  { database, restore, signal, onRows }: ImportJob & { onRows: (done: number) => void },
) {
  let done = await restore.rowsDone(name)
  // The file does not change, so its rows have the same order each time.
  const rows = db
    .prepare<[number], Record<string, unknown>>(`${read} limit -1 offset ?`)
    .iterate(done)
  for (;;) {
    signal.throwIfAborted()
    const batch = takeRows(rows)
    if (batch.length === 0) return
    await database.transaction(async (transaction) => {
      await transaction.query(insert, [JSON.stringify(batch)])
      await restore.setRowsDone(transaction, name, done + batch.length)
    })
    done += batch.length
    onRows(done)
  }
}

function takeRows(rows: IterableIterator<Record<string, unknown>>) {
  const batch: Record<string, unknown>[] = []
  while (batch.length < rowsPerTransaction) {
    const { value, done } = rows.next()
    if (done) break
    const { path } = value
    batch.push(typeof path === 'string' ? { ...value, folded: fold(path) } : value)
  }
  return batch
}

const rowsPerTransaction = 500

const countRows = (db: Database, table: string) =>
  db.prepare<[], number>(`select count(*) from ${table}`).pluck().get() ?? 0

const tables: Table[] = [
  {
    name: 'directories',
    read: `select d.path, p.path parent, d.name, d.children, d.file_count, d.total_size
           from directories d left join directories p on p.id = d.parent order by d.id`,
    insert: `insert into static_service.directories
               select path, parent, name, children, file_count, total_size
               from jsonb_populate_recordset(null::static_service.directories, $1)
             on conflict (path) do update set children = excluded.children,
               file_count = excluded.file_count, total_size = excluded.total_size`,
  },
  {
    name: 'files',
    read: `select f.path, d.path directory, f.name, f.digest, f.size, f.content_type, f.category,
             f.uploaded_by, f.created_at, f.updated_at
           from files f join directories d on d.id = f.directory order by f.id`,
    insert: `insert into static_service.files (path, directory, name, folded, digest, size,
               content_type, category, uploaded_by, created_at, updated_at, revision)
               select path, directory, name, folded, digest, size, content_type, category,
                 uploaded_by, created_at, updated_at, 1
               from jsonb_populate_recordset(null::static_service.files, $1)`,
  },
  {
    name: 'blobs',
    read: 'select digest, size, refs from blobs order by digest',
    insert: `insert into static_service.blobs
               select * from jsonb_populate_recordset(null::static_service.blobs, $1)`,
  },
  {
    name: 'categories',
    read: 'select category, file_count, total_size from categories order by category',
    insert: `insert into static_service.categories
               select * from jsonb_populate_recordset(null::static_service.categories, $1)`,
  },
  {
    name: 'versions',
    read: 'select id, version, changelog, created_by, created_at from versions order by id',
    insert: `insert into static_service.versions
               select * from jsonb_populate_recordset(null::static_service.versions, $1)`,
  },
]
