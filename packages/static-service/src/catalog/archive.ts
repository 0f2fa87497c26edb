import { eventTables } from '@domains-and-files/events'
import { insertRows, name, type Row, type SqlTable, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { Group } from './changes/group.ts'
import { addPast } from './changes/past-rows.ts'
import { loadFiles } from './changes/stored-rows.ts'
import { columnsIn, insertInto, type RowOf, selected } from './records.ts'
import { type FileRow, fileColumns, pastColumns, versionColumns } from './tables.ts'

/** The catalog tables of a backup, in the order of a restore. */
export const catalogTables: SqlTable[] = [
  { name: 'files', key: ['path'], columns: selected({ ...fileColumns, changeId: 'bigint' }) },
  { name: 'versions', key: ['id'], columns: selected(versionColumns) },
  { name: 'blobs', key: ['digest'], columns: sql`digest, size` },
  { name: 'past_files', key: ['path', 'change_id'] },
  { name: 'changes', key: ['id'] },
  { name: 'changed_files', key: ['change_id', 'path'] },
  { name: 'unfinished_changes', key: ['id'] },
  { name: 'catalog', key: ['singleton'] },
  ...eventTables,
]

/** Inserts and counts rows of a backup. Keeps existing ones, so that an interrupted restore can be repeated. */
export async function importRows(group: Group, { table, rows }: { table: string; rows: Row[] }): Promise<void> {
  const { transaction } = group
  // They are as the backup has read them.
  if (table === 'files') await importFiles(group, rows as unknown as ArchivedFile[])
  else if (table === 'versions') await storeVersions(transaction, rows)
  else if (table === 'past_files') await addPast(group, rows.map(toPast))
  else if (table === 'catalog') for (const row of rows) await continueAfter(transaction, row)
  else await insertRows(transaction, table, rows)
}

// They are in backups as they are stored.
const toPast = (row: Row) =>
  Object.fromEntries(columnsIn(pastColumns).map(({ member, column }) => [member, row[column]])) as RowOf<
    typeof pastColumns
  >

type ArchivedFile = FileRow & { changeId: number }

async function importFiles(group: Group, rows: ArchivedFile[]) {
  const paths = rows.map(({ path }) => path)
  const table = await loadFiles(group, paths, { digests: rows.map(({ digest }) => digest) })
  const { dates } = table
  for (const { changeId, ...row } of rows) {
    if (table.files.get(row.path)) continue
    if (table.isBlocked(row.path)) throw new Error(`${row.path} is a directory, or below a file`)
    table.set(row.path, row, changeId)
    if (row.updatedAt > dates.latest) dates.latest = row.updatedAt
  }
  table.accept(undefined)
}

const storeVersions = insertInto('versions', versionColumns, 'on conflict do nothing')

/** Later changes have larger numbers, and dates that are no earlier. */
async function continueAfter(transaction: SqlTransaction, row: Row) {
  const { last_change: change, last_changed_at: at } = row
  const catalog = name('catalog')
  await transaction.run(sql`update ${catalog} set last_change = ${change} where last_change < ${change}`)
  await transaction.run(sql`update ${catalog} set last_changed_at = ${at} where last_changed_at < ${at}`)
}
