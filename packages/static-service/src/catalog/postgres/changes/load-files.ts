import type { Transaction } from '@domains-and-files/persistence'
import type { FileRow } from '../../../files/file-record.ts'
import { parentOf } from '../../../files/path-segments.ts'
import { fileColumns } from '../file-columns.ts'
import type { BlobReferences, CategoryCounts, DirectoryCounts, LoadedRows } from './loaded-files.ts'

interface Found {
  files: FileRow[]
  directories: DirectoryCounts[]
  blobs: BlobReferences[]
}

/** Loads what commands on these paths can touch: files and directories there and above, references and counts. */
export async function loadFiles(
  transaction: Transaction,
  wanted: { paths: string[]; digests: string[] },
): Promise<LoadedRows> {
  const paths = withAncestors(wanted.paths)
  const digests = new Set(wanted.digests)
  const rows: LoadedRows = {
    paths,
    digests,
    files: [],
    directories: [],
    blobs: [],
    ...(await loadCounts(transaction)),
  }
  const blobs = new Map<string, BlobReferences>()
  for (const [some, ofDigests] of pieces([...paths], [...digests])) {
    const [found] = await transaction.query<{ found: Found }>(loadQuery, [some, ofDigests])
    if (!found) throw new Error('a query without a table has no row')
    for (const file of found.found.files) rows.files.push(file)
    for (const directory of found.found.directories) rows.directories.push(directory)
    for (const blob of found.found.blobs) blobs.set(blob.digest, blob)
  }
  return { ...rows, blobs: [...blobs.values()] }
}

/** Files below a directory, by path, at most `limit`; the root is empty. */
export function loadBelow(
  transaction: Transaction,
  directory: string,
  limit: number | null,
): Promise<FileRow[]> {
  // `0` is the character after `/`. No path contains U+10FFFF and more.
  const [after, before] = directory === '' ? ['', '\u{10ffff}'] : [`${directory}/`, `${directory}0`]
  return transaction.query<FileRow & Record<string, unknown>>(
    `select ${fileColumns} from static_service.files
     where path > $1 and path < $2 order by path limit $3`,
    [after, before, limit],
  )
}

// In pieces: an array of a million paths would exceed the time limit of a statement.
const pieceSize = 5000

function* pieces(paths: string[], digests: string[]): Generator<[string[], string[]]> {
  const end = Math.max(paths.length, digests.length)
  for (let from = 0; from < end; from += pieceSize) {
    yield [paths.slice(from, from + pieceSize), digests.slice(from, from + pieceSize)]
  }
}

const loadQuery = `
  with found as materialized (
    select ${fileColumns} from static_service.files where path = any($1)
  ), wanted as materialized (
    select unnest($2::text[]) collate "C" digest union select digest from found
  )
  select json_build_object(
    'files', (select coalesce(json_agg(found), '[]') from found),
    'directories', (
      select coalesce(json_agg(json_build_object('path', path, 'children', children, 'files', file_count, 'bytes', total_size)), '[]')
      from static_service.directories where path = any($1)),
    'blobs', (
      select coalesce(json_agg(blobs), '[]')
      from wanted cross join lateral (select digest, size, refs from static_service.blobs where digest = wanted.digest) blobs)
  ) found`

async function loadCounts(transaction: Transaction) {
  const [row] = await transaction.query<{ stored_size: number; categories: CategoryCounts[] }>(
    `select stored_size, (
       select coalesce(json_agg(json_build_object('category', category, 'files', file_count, 'bytes', total_size)), '[]')
       from static_service.categories) categories
     from static_service.catalog`,
  )
  if (!row) throw new Error('the catalog has no row of counts')
  return { storedSize: row.stored_size, categories: row.categories }
}

function withAncestors(paths: string[]): Set<string> {
  const all = new Set([''])
  for (const path of paths) {
    for (let at = path; !all.has(at); at = parentOf(at)) all.add(at)
  }
  return all
}
