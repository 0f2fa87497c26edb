import type { Transaction } from '@domains-and-files/persistence'
import type { FileRow } from '../../../files/file-record.ts'
import { nameOf, parentOf } from '../../../files/path-segments.ts'
import { fold } from '../../fold.ts'
import { type ChangedFile, keptRevisions, type ListedState } from '../changed-files.ts'
import type { LoadedFiles } from './loaded-files.ts'
import type { TrackedRows } from './tracked-rows.ts'

/** Writes what the commands have left, and gives the changed rows the revision. */
export async function writeChanges(
  transaction: Transaction,
  table: LoadedFiles,
  revision: number,
): Promise<void> {
  const files = split(table.files)
  for (const some of pieces(files.removed)) await transaction.query(removeFiles, [some])
  for (const some of pieces(files.stored)) {
    await transaction.query(storeFiles, [JSON.stringify(some.map(toStored)), revision])
  }
  const directories = split(table.directories)
  for (const some of pieces(directories.removed)) await transaction.query(removeDirectories, [some])
  for (const some of pieces(directories.stored)) {
    const rows = some.map((row) => ({
      ...row,
      parent: row.path === '' ? null : parentOf(row.path),
      name: nameOf(row.path),
    }))
    await transaction.query(storeDirectories, [JSON.stringify(rows)])
  }
  const blobs = split(table.blobs)
  for (const some of pieces(blobs.removed)) await transaction.query(removeBlobs, [some])
  for (const some of pieces(blobs.stored)) {
    await transaction.query(storeBlobs, [JSON.stringify(some)])
  }
  const categories = split(table.categories)
  await transaction.query(writeCounts, [
    categories.removed,
    JSON.stringify(categories.stored),
    revision,
    table.storedSize,
    JSON.stringify(changesOf(table.files)),
  ])
}

// An empty path stands for more files than are named.
function changesOf(files: TrackedRows<FileRow>): ChangedFile[] {
  const changes = files.changes()
  if (changes.length > maxNamed) return [{ path: '', before: null, after: null }]
  return changes.map(({ key, before, now }) => ({
    path: key,
    before: stateOf(before),
    after: stateOf(now),
  }))
}

const maxNamed = 100

const stateOf = (row: FileRow | undefined): ListedState | null =>
  row ? { size: row.size, updatedAt: row.updatedAt, category: row.category } : null

function split<Row>(rows: TrackedRows<Row>): { removed: string[]; stored: Row[] } {
  const changes = rows.changes()
  return {
    removed: changes.flatMap(({ key, now }) => (now === undefined ? [key] : [])),
    stored: changes.flatMap(({ now }) => (now === undefined ? [] : [now])),
  }
}

// A statement has a time limit; each new file adds about a hundred entries to the search index.
const pieceSize = 1000

function* pieces<Row>(rows: Row[]): Generator<Row[]> {
  for (let from = 0; from < rows.length; from += pieceSize) yield rows.slice(from, from + pieceSize)
}

const toStored = (row: FileRow) => ({
  ...row,
  directory: parentOf(row.path),
  folded: fold(row.path),
})

const removeFiles = 'delete from static_service.files where path = any($1)'

const storeFiles = `
  insert into static_service.files (path, directory, name, folded, digest, size, content_type, category,
    uploaded_by, created_at, updated_at, revision)
  select path, directory, name, folded, digest, size, "contentType", category, "uploadedBy", "createdAt",
    "updatedAt", $2
  from json_to_recordset($1) as row (path text, directory text, name text, folded text, digest text, size bigint,
    "contentType" text, category text, "uploadedBy" text, "createdAt" text, "updatedAt" text)
  on conflict (path) do update set digest = excluded.digest, size = excluded.size,
    content_type = excluded.content_type, category = excluded.category, uploaded_by = excluded.uploaded_by,
    created_at = excluded.created_at, updated_at = excluded.updated_at, revision = excluded.revision`

const removeDirectories = 'delete from static_service.directories where path = any($1)'

const storeDirectories = `
  insert into static_service.directories (path, parent, name, children, file_count, total_size)
  select path, parent, name, children, files, bytes
  from json_to_recordset($1) as row (path text, parent text, name text, children integer, files bigint, bytes bigint)
  on conflict (path) do update set children = excluded.children, file_count = excluded.file_count,
    total_size = excluded.total_size`

const removeBlobs = 'delete from static_service.blobs where digest = any($1)'

const storeBlobs = `
  insert into static_service.blobs (digest, size, refs)
  select digest, size, refs from json_to_recordset($1) as row (digest text, size bigint, refs bigint)
  on conflict (digest) do update set refs = excluded.refs`

const writeCounts = `
  with removed as (
    delete from static_service.categories where category = any($1)
  ), stored as (
    insert into static_service.categories (category, file_count, total_size)
    select category, files, bytes
    from json_to_recordset($2) as row (category text, files bigint, bytes bigint)
    on conflict (category) do update set file_count = excluded.file_count, total_size = excluded.total_size
  ), named as (
    insert into static_service.changed_paths (revision, path, before, after)
    select $3::bigint, path, before, after from json_to_recordset($5) as row (path text, before json, after json)
  ), forgotten as (
    delete from static_service.changed_paths where $3::bigint % 100 = 0 and revision <= $3::bigint - ${keptRevisions}
  )
  update static_service.catalog set revision = $3::bigint, stored_size = $4`
