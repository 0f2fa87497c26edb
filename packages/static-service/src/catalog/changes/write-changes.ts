import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { nameOf, parentOf } from '../../files/file-path.ts'
import { pastTypes } from '../history/past-rows.ts'
import { fold } from '../list-query.ts'
import type { RecordedState } from '../listing/list-changes.ts'
import { searchIndexOf } from '../listing/search-index.ts'
import { among, insertInto, pieces, runTogether, stateTypes, type Writer } from '../records.ts'
import type { Target } from './apply-command.ts'
import { appendFileEvents } from './file-events.ts'
import type { Group } from './load-files.ts'
import type {
  BlobReferences,
  CategoryCounts,
  DirectoryCounts,
  FileChange,
  StoredFile,
} from './loaded-files.ts'
import { dropOldest, loseFiles } from './prune-past.ts'
import type { TrackedRows } from './tracked-rows.ts'

/** Writes what commands have left in memory: every row that is made, replaced or ended is written here. */
export async function writeChanges(group: Group, { table, dates }: Target): Promise<void> {
  const { transaction, references, quota, keeps } = group
  await writeFiles(transaction, table.files)
  await runTogether(transaction, async (writer) => {
    await writeRows(writer, table.directories, directoryRows)
    await writeRows(writer, table.blobs, blobRows)
    await writeRows(writer, table.categories, categoryRows)
    await recordChanges(writer, table.changes)
    await writer.run(sql`update ${name('catalog')} set last_change = ${table.lastChange},
      last_changed_at = ${dates.latest}, stored_size = ${table.storedSize}, past_size = ${table.pastSize}`)
  })
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
  // Only the past makes them too many: files alone are refused before.
  const excess = quota === undefined ? 0 : table.storedSize + table.pastSize - quota
  if (excess > 0 && table.pastSize > 0) await dropOldest(group, excess)
}

// Rows that ended and are not kept were there from the oldest of them on.
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

const stateColumns = Object.keys(stateTypes).filter((each) => each !== 'path')

const setAll = (columns: string[]) =>
  `do update set ${columns.map((each) => `${each} = excluded.${each}`).join(', ')}`

const storeFiles = insertInto(
  'files',
  { ...stateTypes, id: 'bigint', directory: 'text', name: 'text', folded: 'text' },
  `on conflict (id) ${setAll(stateColumns)}`,
)

const folded = (file: StoredFile) => ({
  ...recordOf(file),
  ...{ id: file.id, name: file.name },
  ...{ directory: parentOf(file.path), folded: fold(file.path) },
})

// See `foldedPath`.
function unfolded(file: StoredFile) {
  const record = folded(file)
  const upper = file.path.replace(/[a-z]+/g, (letters) => letters.toUpperCase())
  return record.folded === upper ? { ...record, folded: '' } : record
}

const recordOf = (file: StoredFile) => ({
  path: file.path,
  digest: file.digest,
  size: file.size,
  content_type: file.contentType,
  category: file.category,
  uploaded_by: file.uploadedBy,
  created_at: file.createdAt,
  updated_at: file.updatedAt,
  change_id: file.changeId,
})

/** How the rows of a table are removed by their key, and stored. */
interface RowTable<Row> {
  table: string
  key: string
  store: ReturnType<typeof insertInto>
  recordOf: (row: Row) => object
}

const directoryRows: RowTable<DirectoryCounts> = {
  ...{ table: 'directories', key: 'path' },
  store: insertInto(
    'directories',
    {
      ...{ path: 'text', parent: 'text', name: 'text' },
      ...{ children: 'bigint', file_count: 'bigint', total_size: 'bigint' },
    },
    `on conflict (path) ${setAll(['children', 'file_count', 'total_size'])}`,
  ),
  recordOf: ({ path, children, files, bytes }) => ({
    ...{ path, parent: path === '' ? null : parentOf(path), name: nameOf(path) },
    ...{ children, file_count: files, total_size: bytes },
  }),
}

const blobRows: RowTable<BlobReferences> = {
  ...{ table: 'blobs', key: 'digest' },
  store: insertInto(
    'blobs',
    { digest: 'text', size: 'bigint', refs: 'bigint', past: 'bigint' },
    `on conflict (digest) ${setAll(['refs', 'past'])}`,
  ),
  recordOf: (row) => row,
}

const categoryRows: RowTable<CategoryCounts> = {
  ...{ table: 'categories', key: 'category' },
  store: insertInto(
    'categories',
    { category: 'text', file_count: 'bigint', total_size: 'bigint' },
    `on conflict (category) ${setAll(['file_count', 'total_size'])}`,
  ),
  recordOf: ({ category, files, bytes }) => ({ category, file_count: files, total_size: bytes }),
}

async function writeRows<Row>(
  writer: Writer,
  rows: TrackedRows<Row>,
  { table, key, store, recordOf }: RowTable<Row>,
) {
  const changes = rows.changes()
  const removed = changes.flatMap(({ key, after }) => (after === undefined ? key : []))
  for (const some of pieces(removed))
    await writer.run(sql`delete from ${name(table)} where ${sql([key])} ${among(some)}`)
  await store(
    writer,
    changes.flatMap(({ after }) => (after === undefined ? [] : recordOf(after))),
  )
}

// A slice adds to the entry of its change.
async function recordChanges(writer: Writer, changes: FileChange[]) {
  const entries = changes.map(({ entry: { by, requestId, paths, isForgotten: _, ...rest } }) => ({
    ...rest,
    ...{ changed_by: by, request_id: requestId, paths: JSON.stringify(paths) },
  }))
  await storeEntries(writer, entries)
  const files = changes.flatMap(({ entry: { id }, files }) =>
    files.map(({ key, before, after }) => ({
      ...{ change_id: id, path: key, before_change: before?.changeId ?? null },
      ...{ before: stateOf(before), after: stateOf(after) },
    })),
  )
  await storeChanged(writer, files)
  const past = changes.flatMap(({ entry: { id, at }, past }) =>
    past.map((file) => ({ ...recordOf(file), ended_by: id, ended_at: at })),
  )
  await storePast(writer, past)
}

const storeEntries = insertInto(
  'changes',
  {
    ...{ id: 'bigint', at: 'text', changed_by: 'text', token: 'text', request_id: 'text' },
    ...{ action: 'text', prefix: 'text', version: 'text', added: 'bigint', replaced: 'bigint' },
    ...{ removed: 'bigint', bytes: 'bigint', paths: 'text' },
  },
  `on conflict (id) do update set added = changes.added + excluded.added,
    replaced = changes.replaced + excluded.replaced, removed = changes.removed + excluded.removed,
    bytes = changes.bytes + excluded.bytes`,
)

const storeChanged = insertInto('changed_files', {
  ...{ change_id: 'bigint', path: 'text', before_change: 'bigint', before: 'text', after: 'text' },
})

const storePast = insertInto('past_files', pastTypes, 'on conflict do nothing')

function stateOf(row: StoredFile | undefined): string | null {
  if (!row) return null
  const { digest, size, contentType, category, updatedAt } = row
  const state: RecordedState = { digest, size, contentType, category, updatedAt }
  return JSON.stringify(state)
}
