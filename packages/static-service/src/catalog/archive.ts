import {
  name,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import type { FileRow, VersionRow } from '../files/file-record.ts'
import type { CatalogSnapshot } from './catalog-archive.ts'
import type { Outcome } from './changes/commands.ts'
import { FreedContents } from './changes/freed-contents.ts'
import { type Group, loadTarget } from './changes/load-files.ts'
import { writeChanges } from './changes/write-changes.ts'
import { fileColumns, Queries } from './queries.ts'
import { records } from './records.ts'
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
  const totals = await new Queries(transaction).totals()
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
      sql`select digest, size from ${name('blobs')} where refs > 0 and digest > ${digest} order by digest`,
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

/** Adds files as they are, for a restore. Leaves paths that exist. */
export async function importFiles(group: Group, rows: FileRow[]): Promise<Outcome> {
  const paths = rows.map(({ path }) => path)
  const digests = rows.map(({ digest }) => digest)
  const target = await loadTarget(group, paths, { digests })
  const { table, dates } = target
  const freed = new FreedContents()
  for (const row of rows) {
    if (table.find(row.path)) continue
    if (table.isDirectory(row.path) || !table.add(row, freed)) {
      throw new Error(`${row.path} is a directory, or below a file`)
    }
    dates.atLeast(row.updatedAt)
  }
  table.accept(undefined, dates.latest)
  await writeChanges(group, target)
  return { done: 'other' }
}

/** Adds version records with their numbers, for a restore. Leaves those that exist. */
export async function importVersions({ transaction }: Group, rows: VersionRow[]): Promise<Outcome> {
  const versions = rows.map(({ createdBy, createdAt, changeId, ...row }) => ({
    ...{ ...row, created_by: createdBy, created_at: createdAt, change_id: changeId },
  }))
  await transaction.run(sql`insert into ${name('versions')} (id, version, changelog, created_by, created_at, change_id)
    select id, version, changelog, created_by, created_at, change_id from ${records(versions, {
      id: 'bigint',
      version: 'text',
      changelog: 'text',
      created_by: 'text',
      created_at: 'text',
      change_id: 'bigint',
    })} where true on conflict do nothing`)
  // Later changes have larger numbers than those that versions name.
  const last = Math.max(0, ...rows.map(({ changeId }) => changeId))
  await transaction.run(
    sql`update ${name('catalog')} set last_change = ${last} where last_change < ${last}`,
  )
  return { done: 'other' }
}
