import { appendEvents, type NewEvent } from '@domains-and-files/events'
import { name, one, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { fold, nameOf, parentOf } from '../../files/file-path.ts'
import { type IndexedFile, searchIndexes } from '../listing/search-index.ts'
import { among, type Columns, insertInto, jsonRow, orSet, pieces, runTogether, type Writer } from '../records.ts'
import * as tables from '../tables.ts'
import { markIncomplete } from '../versions.ts'
import type { Group } from './group.ts'
import type { CatalogCounts, FileChange, LoadedFiles, RowChange } from './loaded-files.ts'

// Loads the rows that commands can change, and writes those that they have changed. No other code writes rows of files.

/** Rows are JSON, a comma between two. */
interface Loaded extends CatalogCounts, Record<'files' | 'directories' | 'blobs', string | null> {
  /** The last change that the newest version shows. */
  newestShown: number
  /** The latest date of any file. */
  lastChangedAt: string
}

// In pieces: an array of a million paths would exceed the time limit of a statement.
const pieceSize = 5000

/**
 * Loads all rows that commands on these paths can touch: files and directories there and above, references, counts.
 * `digests`: those that files get; `areNew`: their bytes may be missing.
 */
export async function loadFiles(
  group: Group,
  wanted: string[],
  { digests: named = [], areNew = false }: { digests?: string[]; areNew?: boolean } = {},
): Promise<LoadedFiles> {
  const { transaction, contents, keeps, table } = group
  const unknown = [...new Set(named)].filter((digest) => !table.blobs.has(digest))
  const missing = areNew && unknown.length > 0 && (await contents?.findMissing(transaction, unknown))
  for (const digest of missing || []) table.missing.add(digest)
  const paths = withAncestors(wanted).filter((path) => !table.files.has(path))
  for (let from = 0; from < Math.max(paths.length, unknown.length); from += pieceSize) {
    const [some, digests] = [paths, unknown].map((all) => all.slice(from, from + pieceSize)) as [string[], string[]]
    const found = await one<Loaded>(transaction, loadStatement(some, digests))
    const { newestShown, lastChangedAt: latest, files, directories, blobs, ...counts } = found
    if (!table.files.has('')) {
      const keptUpTo = { all: Number.MAX_SAFE_INTEGER, versions: newestShown, none: -1, nothing: -1 }[keeps]
      table.begin(counts, { latest, keptUpTo })
    }
    table.files.load(some, readJson(files))
    table.directories.load(some, readJson(directories))
    table.blobs.load(digests, readJson(blobs))
  }
  return table
}

const readJson = (rows: string | null) => JSON.parse(`[${rows ?? ''}]`)

const objects = {
  file: jsonRow(tables.storedColumns),
  directory: jsonRow(tables.directoryColumns),
  blob: jsonRow(tables.blobColumns),
}

const files = name('files')
const directories = name('directories')
const blobs = name('blobs')
const versions = name('versions')
const catalog = name('catalog')

// One statement: in PostgreSQL each is a round trip under the lock of the catalog.
const loadStatement = (paths: string[], digests: string[]): Statement => sql`
  with found as materialized (
    select * from ${files} where path ${among(paths)}
  ), wanted as materialized (
    select digest from ${blobs} where digest ${among(digests)} union select digest from found
  )
  select stored_size "storedSize", past_size "pastSize", last_change "lastChange", last_changed_at "lastChangedAt",
    (select coalesce(max(id), 0) from ${files}) "lastId",
    coalesce((select change_id from ${versions} order by id desc limit 1), 0) "newestShown",
    (select string_agg(${objects.file}, ',') from found) files,
    (select string_agg(${objects.directory}, ',') from ${directories} where path ${among(paths)}) directories,
    (select string_agg((select ${objects.blob} from ${blobs} blob where blob.digest = wanted.digest), ',')
      from wanted) blobs
  from ${catalog}`

function withAncestors(paths: string[]): string[] {
  const all = new Set([''])
  for (const path of paths) {
    for (let at = path; !all.has(at); at = parentOf(at)) all.add(at)
  }
  return [...all]
}

/** Writes the rows that commands changed in memory since the last call. */
export async function writeChanges(group: Group): Promise<void> {
  const { transaction, contents, keeps, table } = group
  const changes = table.changes.splice(0)
  const [files, directories, blobs] = [table.files.flush(), table.directories.flush(), table.blobs.flush()]
  if (changes.length + files.length + blobs.length === 0) return
  const { lastChange, storedSize, pastSize } = table.counts
  await writeFiles(transaction, files)
  await runTogether(transaction, async (writer) => {
    await writeDirectories(writer, directories)
    await addToCategories(writer, categoryChanges(files))
    await recordChanges(writer, changes)
    await writeBlobs(writer, blobs)
    await writer.run(sql`update ${catalog} set last_change = ${lastChange},
      last_changed_at = ${table.dates.latest}, stored_size = ${storedSize}, past_size = ${pastSize}`)
  })
  const added = blobs.flatMap(({ key, before, after }) => (after && !before ? key : []))
  const freed = blobs.flatMap(({ key, before, after }) => (before && !after ? key : []))
  if (added.length + freed.length > 0) await contents?.apply(transaction, { added, freed })
  // Versions since the oldest ended row that is not kept lose files.
  const lost = changes.flatMap(({ entry: { id }, firstLost }) =>
    firstLost < id ? { changeId: firstLost, endedBy: id } : [],
  )
  if (lost.length > 0 && keeps !== 'nothing') await markIncomplete(transaction, lost)
  // A change in slices has one event, after its last slice.
  if (table.recordedAs !== undefined) return
  const events = changes.map(({ entry, files }) =>
    fileEventOf(
      entry,
      files.map(({ key }) => key.slice(0, key.lastIndexOf('/') + 1)),
    ),
  )
  await appendEvents(transaction, events)
}

// A file that moved has a new row. Rows are ended first, since another may get their path.
async function writeFiles(transaction: SqlTransaction, files: RowChange<tables.StoredFile>[]) {
  const { dialect } = transaction
  const index = searchIndexes[dialect]
  const ended: tables.StoredFile[] = []
  const unindexed: IndexedFile[] = []
  const stored: object[] = []
  for (const { before, after } of files) {
    const isSame = before?.id === after?.id
    if (before && !isSame) ended.push(before)
    if (before && after && isSame && after.category !== before.category) await index.remove?.(transaction, [before])
    if (!after) continue
    const { id, path, category } = after
    const folded = fold(path)
    // As SQLite's `upper` writes it: see `foldedPath`.
    const isPlain = dialect === 'sqlite' && folded === path.replace(/[a-z]+/g, (letters) => letters.toUpperCase())
    const place = { directory: parentOf(path), name: nameOf(path), folded: isPlain ? '' : folded }
    stored.push({ ...after, ...place })
    if (!isSame || category !== before?.category) unindexed.push({ id, folded, category })
  }
  for (const some of pieces(ended)) {
    const ids = some.map(({ id }) => id)
    await transaction.run(sql`delete from ${name('files')} where id ${among(ids)}`)
    await index.remove?.(transaction, some)
  }
  await storeFiles(transaction, stored)
  await index.add?.(transaction, unindexed)
}

const { path: _, ...replacedColumns } = tables.fileColumns

const storeFiles = insertInto(
  'files',
  { ...tables.storedColumns, directory: 'text', name: 'text', folded: 'text' },
  orSet('id', { ...replacedColumns, changeId: 'bigint' }),
)

/** Writes rows by the first of these columns. Columns that are `made` with a row never change. */
function rowsIn<Row extends object>(
  table: string,
  columns: Columns,
  made: Columns = {},
  valuesOf?: (row: Row) => object,
) {
  const [key = ''] = Object.keys(columns)
  const { [key]: _, ...others } = columns
  const store = insertInto(table, { ...columns, ...made }, orSet(key, others))
  return async (writer: Writer, changes: RowChange<Row>[]) => {
    const removed = changes.flatMap(({ key, after }) => (after ? [] : key))
    for (const some of pieces(removed))
      await writer.run(sql`delete from ${name(table)} where ${sql([key])} ${among(some)}`)
    const kept = changes.flatMap(({ after }) => (after ? [{ ...after, ...valuesOf?.(after) }] : []))
    await store(writer, kept)
  }
}

const writeDirectories = rowsIn<tables.DirectoryCounts>(
  'directories',
  tables.directoryColumns,
  { parent: 'text', name: 'text' },
  ({ path }) => ({ name: nameOf(path), parent: path === '' ? null : parentOf(path) }),
)
const writeBlobs = rowsIn<tables.BlobReferences>('blobs', tables.blobColumns)

/** Files and bytes by category that these changes add. */
function categoryChanges(changes: RowChange<tables.StoredFile>[]) {
  const added = new Map<string, { category: string; files: number; bytes: number }>()
  for (const { before, after } of changes)
    for (const [file, files] of [[before, -1] as const, [after, 1] as const]) {
      if (!file) continue
      const { category, size } = file
      const sum = added.getOrInsertComputed(category, () => ({ category, files: 0, bytes: 0 }))
      sum.files += files
      sum.bytes += files * size
    }
  return [...added.values()]
}

const { category: __, ...sums } = tables.categoryColumns

const addToCategories = insertInto(
  'categories',
  tables.categoryColumns,
  orSet('category', sums, (column) => `categories.${column} + excluded.${column}`),
)

// A slice adds to the entry of its change.
async function recordChanges(writer: Writer, changes: FileChange[]) {
  const entries = changes.map(({ entry }) => ({ ...entry, paths: JSON.stringify(entry.paths) }))
  await storeEntries(writer, entries)
  const files = changes.flatMap(({ entry: { id }, files }) =>
    files.map(({ key, before, after }) => ({
      changeId: id,
      path: key,
      beforeChange: before?.changeId ?? null,
      before: stateOf(before),
      after: stateOf(after),
    })),
  )
  await storeChanged(writer, files)
  const past = changes.flatMap(({ entry: { id, at }, past }) =>
    past.map((file) => ({ ...file, endedBy: id, endedAt: at })),
  )
  await storePast(writer, past)
}

const storeEntries = insertInto(
  'changes',
  tables.entryColumns,
  orSet(
    'id',
    { added: 'bigint', replaced: 'bigint', removed: 'bigint', bytes: 'bigint' },
    (column) => `changes.${column} + excluded.${column}`,
  ),
)

const storeChanged = insertInto('changed_files', tables.changedColumns)

const storePast = insertInto('past_files', tables.pastColumns, 'on conflict do nothing')

function stateOf(row: tables.StoredFile | undefined): string | null {
  if (!row) return null
  const { digest, size, contentType, category, updatedAt } = row
  return JSON.stringify({ digest, size, contentType, category, updatedAt } satisfies tables.RecordedState)
}

/** Data of an event `files.changed`: the entry of the change, and its directories. */
export interface FilesChanged {
  entry: tables.ChangeEntry
  /** With a trailing slash; the root is empty. At most 100; more are replaced by their ancestors. */
  directories: string[]
  /** Files below these directories were changed, too. */
  isDeep: boolean
}

const maxDirectories = 100

/** The event of a change in these directories, named as in `FilesChanged`, or below them. */
export function fileEventOf(entry: tables.ChangeEntry, directories: Iterable<string>, isDeep = false): NewEvent {
  const named = [...new Set(directories)]
  const { by, requestId } = entry
  const isMany = named.length > maxDirectories
  const data = { entry, directories: isMany ? directoriesAbove(named) : named, isDeep: isDeep || isMany }
  return { type: 'files.changed', by, requestId, data: data satisfies FilesChanged }
}

/** The deepest level at which at most 100 directories cover all. */
function directoriesAbove(parents: string[]): string[] {
  let found = ['']
  for (let depth = 1; ; depth += 1) {
    const cut = new Set(parents.map((each) => each.split(/(?<=\/)/, depth).join('')))
    if (cut.size > maxDirectories) return found
    found = [...cut]
  }
}
