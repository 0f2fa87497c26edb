import { name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { parentOf } from '../../files/file-path.ts'
import { among, jsonRow, selected } from '../records.ts'
import {
  type BlobReferences,
  blobColumns,
  type CategoryCounts,
  categoryColumns,
  type DirectoryCounts,
  directoryColumns,
  storedColumns,
} from '../tables.ts'
import { ChangeDates, type Target } from './apply-command.ts'
import { LoadedFiles, type LoadedRows, type StoredFile } from './loaded-files.ts'

/** State that the commands of a group share. */
export interface Group {
  transaction: SqlTransaction
  nowMs: number
  /** Ended files to keep: all, those that the newest version shows, or none. `nothing`: marks no versions either. */
  keeps: 'all' | 'versions' | 'none' | 'nothing'
  /** Maximum bytes of current and past blobs together. */
  quota: number | undefined
  /** Digests without references left. */
  freed: string[]
  /** Digests without bytes: commands that name them are rejected. */
  missing: Set<string>
  /** Blobs that got their first reference, or lost their last one. */
  references: Map<string, { before: boolean; after: boolean }>
}

/** Loads all rows that commands on these paths can touch: files and directories there and above, references, counts. */
export async function loadTarget(
  { transaction, nowMs, keeps, quota }: Group,
  paths: string[],
  { digests = [], recordedAs }: { digests?: string[]; recordedAs?: number | undefined } = {},
): Promise<Target> {
  const rows = await loadRows(transaction, { paths, digests })
  const keptUpTo =
    keeps === 'all' ? Number.MAX_SAFE_INTEGER : keeps === 'versions' ? rows.keptUpTo : -1
  return {
    table: new LoadedFiles({ ...rows, keptUpTo }, recordedAs),
    dates: new ChangeDates(nowMs, rows.lastChangedAt),
    quota,
  }
}

interface Counts {
  storedSize: number
  pastSize: number
  /** The last change that the newest version shows. */
  keptUpTo: number
  lastChange: number
  /** The latest date of any file. */
  lastChangedAt: string
  lastId: number
  categories: string
}

async function loadRows(
  transaction: SqlTransaction,
  wanted: { paths: string[]; digests: string[] },
): Promise<LoadedRows & { lastChangedAt: string }> {
  const paths = withAncestors(wanted.paths)
  const digests = new Set(wanted.digests)
  const files: StoredFile[] = []
  const directories: DirectoryCounts[] = []
  const blobs: BlobReferences[] = []
  let counts: Counts | undefined
  for (const [some, ofDigests] of pieces([...paths], [...digests])) {
    const found = await transaction.get<Found & Counts>(loadStatement(some, ofDigests))
    if (!found) throw new Error('the catalog has no row of counts')
    files.push(...parse<StoredFile>(found.files))
    directories.push(...parse<DirectoryCounts>(found.directories))
    blobs.push(...parse<BlobReferences>(found.blobs))
    counts = found
  }
  if (!counts) throw new Error('there is always the root to load')
  const categories = parse<CategoryCounts>(counts.categories)
  return { ...counts, paths, digests, files, directories, blobs, categories }
}

/** Files below a directory (the root is empty), by path, at most `limit`; only those made before the change `before`. */
export function loadBelow(
  transaction: SqlTransaction,
  directory: string,
  { limit, before }: { limit: number; before?: number },
): Promise<StoredFile[]> {
  const unchanged = before === undefined ? sql`` : sql`and change_id < ${before}`
  return transaction.all<StoredFile>(
    sql`select ${selected(storedColumns)} from ${name('files')}
      where ${below(directory)} ${unchanged} order by path limit ${limit}`,
  )
}

/** Condition: the path is below a directory; the root is empty. */
export function below(directory: string, mark: Statement = sql``): Statement {
  if (directory === '') return sql`path > ''`
  // `0` is the character after `/`.
  return sql`${mark}path > ${`${directory}/`} and ${mark}path < ${`${directory}0`}`
}

// In pieces: an array of a million paths would exceed the time limit of a statement.
const pieceSize = 5000

function* pieces(paths: string[], digests: string[]): Generator<[string[], string[]]> {
  const end = Math.max(paths.length, digests.length)
  for (let from = 0; from < end; from += pieceSize) {
    yield [paths.slice(from, from + pieceSize), digests.slice(from, from + pieceSize)]
  }
}

/** JSON objects, a comma between two; null: none. */
interface Found {
  files: string | null
  directories: string | null
  blobs: string | null
}

const parse = <Row>(json: string | null): Row[] => JSON.parse(`[${json ?? ''}]`) // As the statement below writes it.

const objects = {
  file: jsonRow(storedColumns),
  directory: jsonRow(directoryColumns),
  blob: jsonRow(blobColumns),
  category: jsonRow(categoryColumns),
}

// One statement: in PostgreSQL each is a round trip under the lock of the catalog.
const loadStatement = (paths: string[], digests: string[]): Statement => sql`
  with found as materialized (
    select * from ${name('files')} where path ${among(paths)}
  ), wanted as materialized (
    select digest from ${name('blobs')} where digest ${among(digests)} union select digest from found
  )
  select stored_size "storedSize", past_size "pastSize", last_change "lastChange", last_changed_at "lastChangedAt",
    (select coalesce(max(id), 0) from ${name('files')}) "lastId",
    coalesce((select change_id from ${name('versions')} order by id desc limit 1), 0) "keptUpTo",
    (select string_agg(${objects.category}, ',') from ${name('categories')}) categories,
    (select string_agg(${objects.file}, ',') from found) files,
    (select string_agg(${objects.directory}, ',') from ${name('directories')} where path ${among(paths)}) directories,
    (select string_agg((select ${objects.blob} from ${name('blobs')} blob where blob.digest = wanted.digest), ',')
      from wanted) blobs
  from ${name('catalog')}`

function withAncestors(paths: string[]): Set<string> {
  const all = new Set([''])
  for (const path of paths) {
    for (let at = path; !all.has(at); at = parentOf(at)) all.add(at)
  }
  return all
}
