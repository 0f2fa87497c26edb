import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { nameOf, parentOf } from '../../files/file-path.ts'
import { fold } from '../list-query.ts'
import type { RecordedState } from '../listing/list-changes.ts'
import { searchIndexOf } from '../listing/search-index.ts'
import {
  among,
  type Columns,
  insertInto,
  orSet,
  pieces,
  runTogether,
  type Writer,
} from '../records.ts'
import * as tables from '../tables.ts'
import type { Target } from './apply-command.ts'
import { appendFileEvents } from './file-events.ts'
import type { Group } from './load-files.ts'
import type { FileChange, StoredFile } from './loaded-files.ts'
import { dropOldest, loseFiles } from './prune-past.ts'
import type { TrackedRows } from './tracked-rows.ts'

/** Writes the rows that commands changed in memory: no other code writes rows of files. */
export async function writeChanges(group: Group, { table, dates }: Target): Promise<void> {
  const { transaction, references, quota, keeps } = group
  const { storedSize, pastSize } = table
  await writeFiles(transaction, table.files)
  await runTogether(transaction, async (writer) => {
    await writeDirectories(writer, table.directories, (row) => ({
      ...{ ...row, name: nameOf(row.path), parent: row.path === '' ? null : parentOf(row.path) },
    }))
    await writeBlobs(writer, table.blobs)
    await writeCategories(writer, table.categories)
    await recordChanges(writer, table.changes)
    await writer.run(sql`update ${name('catalog')} set last_change = ${table.lastChange},
      last_changed_at = ${dates.latest}, stored_size = ${storedSize}, past_size = ${pastSize}`)
  })
  for (const digest of table.freed) group.freed.push(digest)
  for (const { key, before, after } of table.blobs.changes()) {
    const known = references.get(key)
    references.set(key, {
      before: known?.before ?? before !== undefined,
      after: after !== undefined,
    })
  }
  const lost = keeps === 'nothing' ? [] : table.changes.flatMap(lostSpan)
  if (lost.length > 0) await loseFiles(transaction, lost)
  if (!table.isSlice) await appendFileEvents(transaction, table.changes)
  // Only the past can exceed the quota here: commands check it for current files.
  const excess = quota === undefined ? 0 : storedSize + pastSize - quota
  if (excess > 0 && pastSize > 0) await dropOldest(group, excess)
}

// Versions since the oldest ended row that is not kept lose files.
function lostSpan({ entry, files, past }: FileChange) {
  const kept = new Set(past)
  const lost = files.flatMap(({ before }) => (before && !kept.has(before) ? before.changeId : []))
  const first = lost.reduce((least, changeId) => Math.min(least, changeId), entry.id)
  return first < entry.id ? [{ changeId: first, endedBy: entry.id }] : []
}

// A file that moved has a new row. Rows are ended first, since another may get their path.
async function writeFiles(transaction: SqlTransaction, files: TrackedRows<StoredFile>) {
  const index = searchIndexOf(transaction.dialect)
  const [ended, unindexed, stored]: [StoredFile[], StoredFile[], StoredFile[]] = [[], [], []]
  for (const { before, after } of files.changes()) {
    const isSame = before?.id === after?.id
    if (before && !isSame) ended.push(before)
    if (after) stored.push(after)
    if (before && after && isSame && after.category !== before.category) {
      await index.remove(transaction, [before])
      unindexed.push(after)
    } else if (after && !isSame) unindexed.push(after)
  }
  for (const some of pieces(ended)) {
    const ids = some.map(({ id }) => id)
    await transaction.run(sql`delete from ${name('files')} where id ${among(ids)}`)
    await index.remove(transaction, some)
  }
  await storeFiles(transaction, stored.map(transaction.dialect === 'sqlite' ? unfolded : folded))
  await index.add(transaction, unindexed)
}

const { path: _, ...replacedColumns } = tables.stateColumns

const storeFiles = insertInto(
  'files',
  { ...tables.storedColumns, directory: 'text', folded: 'text' },
  orSet('id', { ...replacedColumns, changeId: 'bigint' }),
)

const folded = (file: StoredFile) => ({
  ...file,
  ...{ directory: parentOf(file.path), folded: fold(file.path) },
})

// See `foldedPath`.
function unfolded(file: StoredFile) {
  const row = folded(file)
  const upper = file.path.replace(/[a-z]+/g, (letters) => letters.toUpperCase())
  return row.folded === upper ? { ...row, folded: '' } : row
}

/** Writes rows by the first of these columns. Columns that are `made` with a row never change. */
function rowsIn(table: string, columns: Columns, made: Columns = {}) {
  const [key = ''] = Object.keys(columns)
  const { [key]: _, ...others } = columns
  const store = insertInto(table, { ...columns, ...made }, orSet(key, others))
  return async <Row extends object>(
    writer: Writer,
    rows: TrackedRows<Row>,
    toRow: (row: Row) => object = (row) => row,
  ) => {
    const changes = rows.changes()
    const removed = changes.flatMap(({ key, after }) => (after ? [] : key))
    for (const some of pieces(removed))
      await writer.run(sql`delete from ${name(table)} where ${sql([key])} ${among(some)}`)
    const kept = changes.flatMap(({ after }) => (after ? toRow(after) : []))
    await store(writer, kept)
  }
}

const writeDirectories = rowsIn('directories', tables.directoryColumns, {
  ...{ parent: 'text', name: 'text' },
})
const writeBlobs = rowsIn('blobs', tables.blobColumns)
const writeCategories = rowsIn('categories', tables.categoryColumns)

// A slice adds to the entry of its change.
async function recordChanges(writer: Writer, changes: FileChange[]) {
  const entries = changes.map(({ entry }) => ({ ...entry, paths: JSON.stringify(entry.paths) }))
  await storeEntries(writer, entries)
  const files = changes.flatMap(({ entry: { id }, files }) =>
    files.map(({ key, before, after }) => ({
      ...{ changeId: id, path: key, beforeChange: before?.changeId ?? null },
      ...{ before: stateOf(before), after: stateOf(after) },
    })),
  )
  await storeChanged(writer, files)
  const past = changes.flatMap(({ entry: { id, at }, past }) =>
    past.map((file) => ({ ...file, endedBy: id, endedAt: at })),
  )
  await storePast(writer, past)
}

const sums = { added: 'bigint', replaced: 'bigint', removed: 'bigint', bytes: 'bigint' } as const

const storeEntries = insertInto(
  'changes',
  tables.entryColumns,
  orSet('id', sums, (column) => `changes.${column} + excluded.${column}`),
)

const storeChanged = insertInto('changed_files', tables.changedColumns)

const storePast = insertInto('past_files', tables.pastColumns, 'on conflict do nothing')

function stateOf(row: StoredFile | undefined): string | null {
  if (!row) return null
  const { digest, size, contentType, category, updatedAt } = row
  const state: RecordedState = { digest, size, contentType, category, updatedAt }
  return JSON.stringify(state)
}
