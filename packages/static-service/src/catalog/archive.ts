import {
  name,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import type { FileRow, VersionRow } from '../files/file-record.ts'
import type { CatalogSnapshot } from './catalog-archive.ts'
import { fileColumns, Queries } from './queries.ts'
import { versionColumns } from './versions.ts'

const batchRows = 1000

/** Reads all rows as of one moment. */
export function readSnapshot<T>(
  database: Pick<Sql, 'snapshot'>,
  work: (snapshot: CatalogSnapshot) => Promise<T>,
): Promise<T> {
  return database.snapshot(async (transaction) => work(await snapshotOf(transaction)))
}

/** The rows that a transaction of one state sees. */
export async function snapshotOf(transaction: SqlTransaction): Promise<CatalogSnapshot> {
  const { newestVersion: _, ...totals } = await new Queries(transaction).totals()
  return {
    totals,
    files: () => readFiles(transaction),
    versions: () => readVersions(transaction),
    contents: () => readContents(transaction),
  }
}

const readFiles = (transaction: SqlTransaction) =>
  readBatches<FileRow, string>(transaction, '', {
    after: (path) =>
      sql`select ${fileColumns} from ${name('files')} where path > ${path} order by path`,
    keyOf: ({ path }) => path,
  })

const readVersions = (transaction: SqlTransaction) =>
  readBatches<VersionRow, number>(transaction, 0, {
    after: (id) =>
      sql`select ${versionColumns} from ${name('versions')} where id > ${id} order by id`,
    keyOf: ({ id }) => id,
  })

const readContents = (transaction: SqlTransaction) =>
  readBatches<{ digest: string; size: number }, string>(transaction, '', {
    after: (digest) =>
      sql`select digest, size from ${name('blobs')} where digest > ${digest} order by digest`,
    keyOf: ({ digest }) => digest,
  })

async function* readBatches<Row extends object, Key>(
  transaction: SqlTransaction,
  first: Key,
  { after, keyOf }: { after: (key: Key) => Statement; keyOf: (row: Row) => Key },
): AsyncGenerator<Row[]> {
  for (let key = first; ; ) {
    const rows = await transaction.all<Row>(sql`${after(key)} limit ${batchRows}`)
    const last = rows.at(-1)
    if (!last) return
    yield rows
    key = keyOf(last)
  }
}
