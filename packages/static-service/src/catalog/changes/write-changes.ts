import { dialect, name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { nameOf, parentOf } from '../../files/path-segments.ts'
import { insertPast } from '../history/past-rows.ts'
import type { RecordedState } from '../listing/list-changes.ts'
import { fold, searchIndexOf } from '../listing/search-index.ts'
import { among, recordsOf, stateTypes } from '../records.ts'
import type { Target } from './apply-command.ts'
import { appendFileEvents } from './file-events.ts'
import type { Group } from './load-files.ts'
import type { FileChange, LoadedFiles, StoredFile } from './loaded-files.ts'
import { dropOldest, loseFiles } from './prune-past.ts'
import type { TrackedRows } from './tracked-rows.ts'

/** Writes what commands have left in memory: every row that is made, replaced or ended is written here. */
export async function writeChanges(group: Group, { table, dates }: Target): Promise<void> {
  const { transaction, references, quota, keeps } = group
  await writeFiles(transaction, table.files)
  await writeDirectories(transaction, table)
  await writeBlobs(transaction, table)
  await writeCategories(transaction, table)
  await recordChanges(transaction, table.changes)
  await transaction.run(sql`update ${name('catalog')} set last_change = ${table.lastChange},
    last_changed_at = ${dates.latest}, stored_size = ${table.storedSize}, past_size = ${table.pastSize}`)
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
  const [ended, made, replaced]: [StoredFile[], StoredFile[], StoredFile[]] = [[], [], []]
  for (const { before, after } of files.changes()) {
    if (before && after?.id === before.id) {
      replaced.push(after)
      if (after.category !== before.category) {
        await index.remove(transaction, [before])
        await index.add(transaction, [after])
      }
    } else {
      if (before) ended.push(before)
      if (after) made.push(after)
    }
  }
  for (const some of pieces(ended)) {
    const ids = some.map(({ id }) => id)
    await transaction.run(sql`delete from ${name('files')} where id ${among(ids)}`)
    await index.remove(transaction, some)
  }
  for (const some of pieces(replaced)) {
    await transaction.run(sql`update ${name('files')} as file set digest = record.digest, size = record.size,
        content_type = record.content_type, category = record.category, uploaded_by = record.uploaded_by,
        created_at = record.created_at, updated_at = record.updated_at, change_id = record.change_id
      from ${fileRecords(some)} where file.id = record.id`)
  }
  for (const some of pieces(made)) {
    await transaction.run(sql`insert into ${name('files')} (${fileColumns}, folded)
      select ${fileColumns}, ${keptFolded} from ${fileRecords(some)}`)
    await index.add(transaction, some)
  }
}

const fileTypes = { ...stateTypes, id: 'bigint', directory: 'text', name: 'text' } as const

const fileColumns = sql([Object.keys(fileTypes).join(', ')])

// See `foldedPath`.
const keptFolded = dialect({
  sqlite: sql`iif(folded = upper(path), '', folded)`,
  postgres: sql`folded`,
})

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

const foldedRecords = recordsOf({ ...fileTypes, folded: 'text' })

const fileRecords = (files: StoredFile[]) =>
  foldedRecords(
    files.map((file) => ({
      ...recordOf(file),
      ...{ id: file.id, name: file.name },
      ...{ directory: parentOf(file.path), folded: fold(file.path) },
    })),
  )

const directoryRecords = recordsOf({
  path: 'text',
  parent: 'text',
  name: 'text',
  children: 'bigint',
  files: 'bigint',
  bytes: 'bigint',
})

async function writeDirectories(transaction: SqlTransaction, { directories }: LoadedFiles) {
  const { removed, stored } = split(directories)
  for (const some of pieces(removed)) {
    await transaction.run(sql`delete from ${name('directories')} where path ${among(some)}`)
  }
  for (const some of pieces(stored)) {
    const rows = some.map((row) => ({
      ...row,
      parent: row.path === '' ? null : parentOf(row.path),
      name: nameOf(row.path),
    }))
    await transaction.run(sql`insert into ${name('directories')}
        (path, parent, name, children, file_count, total_size)
      select path, parent, name, children, files, bytes from ${directoryRecords(rows)} where true
      on conflict (path) do update set children = excluded.children, file_count = excluded.file_count,
        total_size = excluded.total_size`)
  }
}

const blobRecords = recordsOf({ digest: 'text', size: 'bigint', refs: 'bigint', past: 'bigint' })

async function writeBlobs(transaction: SqlTransaction, { blobs }: LoadedFiles) {
  const { removed, stored } = split(blobs)
  for (const some of pieces(removed)) {
    await transaction.run(sql`delete from ${name('blobs')} where digest ${among(some)}`)
  }
  for (const some of pieces(stored)) {
    await transaction.run(sql`insert into ${name('blobs')} (digest, size, refs, past)
      select digest, size, refs, past
      from ${blobRecords(some)} where true
      on conflict (digest) do update set refs = excluded.refs, past = excluded.past`)
  }
}

const categoryRecords = recordsOf({ category: 'text', files: 'bigint', bytes: 'bigint' })

async function writeCategories(transaction: SqlTransaction, { categories }: LoadedFiles) {
  const { removed, stored } = split(categories)
  if (removed.length > 0) {
    await transaction.run(sql`delete from ${name('categories')} where category ${among(removed)}`)
  }
  if (stored.length === 0) return
  await transaction.run(sql`insert into ${name('categories')} (category, file_count, total_size)
    select category, files, bytes
    from ${categoryRecords(stored)} where true
    on conflict (category) do update set file_count = excluded.file_count, total_size = excluded.total_size`)
}

// A slice adds to the entry of its change.
async function recordChanges(transaction: SqlTransaction, changes: FileChange[]) {
  const entries = changes.map(({ entry: { by, requestId, paths, isForgotten: _, ...rest } }) => ({
    ...rest,
    ...{ changed_by: by, request_id: requestId, paths: JSON.stringify(paths) },
  }))
  const columns = sql([Object.keys(entryTypes).join(', ')])
  await transaction.run(sql`insert into ${name('changes')} as entry (${columns})
    select ${columns} from ${entryRecords(entries)} where true
    on conflict (id) do update set added = entry.added + excluded.added,
      replaced = entry.replaced + excluded.replaced, removed = entry.removed + excluded.removed,
      bytes = entry.bytes + excluded.bytes`)
  const files = changes.flatMap(({ entry: { id }, files }) =>
    files.map(({ key, before, after }) => ({
      ...{ change_id: id, path: key, before_change: before?.changeId ?? null },
      ...{ before: stateOf(before), after: stateOf(after) },
    })),
  )
  for (const some of pieces(files)) {
    await transaction.run(sql`insert into ${name('changed_files')} (change_id, path, before_change, before, after)
      select change_id, path, before_change, before, after from ${changedRecords(some)}`)
  }
  const past = changes.flatMap(({ entry: { id, at }, past }) =>
    past.map((file) => ({ ...recordOf(file), ended_by: id, ended_at: at })),
  )
  for (const some of pieces(past)) await insertPast(transaction, some)
}

const entryTypes = {
  id: 'bigint',
  at: 'text',
  changed_by: 'text',
  token: 'text',
  request_id: 'text',
  action: 'text',
  prefix: 'text',
  version: 'text',
  added: 'bigint',
  replaced: 'bigint',
  removed: 'bigint',
  bytes: 'bigint',
  paths: 'text',
} as const

const entryRecords = recordsOf(entryTypes)

const changedRecords = recordsOf({
  change_id: 'bigint',
  path: 'text',
  before_change: 'bigint',
  before: 'text',
  after: 'text',
})

function stateOf(row: StoredFile | undefined): string | null {
  if (!row) return null
  const { digest, size, contentType, category, updatedAt } = row
  const state: RecordedState = { digest, size, contentType, category, updatedAt }
  return JSON.stringify(state)
}

function split<Row>(rows: TrackedRows<Row>): { removed: string[]; stored: Row[] } {
  const changes = rows.changes()
  return {
    removed: changes.flatMap(({ key, after }) => (after === undefined ? [key] : [])),
    stored: changes.flatMap(({ after }) => (after === undefined ? [] : [after])),
  }
}

// A statement has a time limit; each new file adds about a hundred entries to the search index.
const pieceSize = 1000

function* pieces<Row>(rows: Row[]): Generator<Row[]> {
  for (let from = 0; from < rows.length; from += pieceSize) yield rows.slice(from, from + pieceSize)
}
