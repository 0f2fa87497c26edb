import { list, type Statement, sql } from '@domains-and-files/persistence'
import { nameOf } from '../files/file-path.ts'
import type { FileRow } from '../files/file-record.ts'
import type { Category } from '../files/media-type.ts'

export const sorts = ['path', '-path', 'updated_at', '-updated_at', 'size', '-size'] as const

/** Matches of a search are counted up to this number. */
export const maxHits = 10_000

export interface ListQuery {
  category?: Category | undefined
  search?: string | undefined
  /** Only files below this directory; empty or undefined: the root. */
  prefix?: string | undefined
  /** False: only files directly in the directory. */
  recursive?: boolean | undefined
  sort: (typeof sorts)[number]
  page: number
  /** The page after this file in the order of the list, instead of `page`. */
  after?: SortedFile | undefined
  pageSize: number
}

/** Sort keys of files. Names sort as paths do: a list by name has the files of one directory. */
export type SortedFile = Pick<FileRow, 'path' | 'size' | 'updatedAt'>

export interface FileList {
  rows: FileRow[]
  total: number
  /** False: `total` is a lower bound. */
  isExact: boolean
  /** The last of these files, if more follow. */
  next?: SortedFile | undefined
}

export interface TreeQuery {
  /** The directory to start at; the root is empty. */
  prefix: string
  /** Levels to open. */
  depth: number
}

/** Identifies the state of a tree. */
export interface TreeState {
  files: number
  /** Strong entity tag over all names and digests: the same for every form of the tree. */
  etag: string
}

export type OrderName = (typeof sorts)[number] | 'name' | '-name'

/** A total order of files that an index provides. */
export interface Order {
  /** The first column that it sorts by. */
  column: string
  by: Statement
  /** Condition for the rows that follow a given row. */
  after: (row: SortedFile) => Statement
  /** Condition for those rows and the given row itself. */
  from: (row: SortedFile) => Statement
  /** Whether one file precedes another. */
  precedes: (one: SortedFile, other: SortedFile) => boolean
  reversed: OrderName
}

interface SortKey {
  columns: string[]
  valuesOf: (row: SortedFile) => (string | number)[]
  isLess: (one: SortedFile, other: SortedFile) => boolean
}

const pathKey: SortKey = {
  columns: ['path'],
  valuesOf: ({ path }) => [path],
  isLess: (one, other) => isPathLess(one.path, other.path),
}

const nameKey: SortKey = { ...pathKey, columns: ['name'], valuesOf: ({ path }) => [nameOf(path)] }

const timeKey: SortKey = {
  columns: ['updated_at', 'path'],
  valuesOf: ({ updatedAt, path }) => [updatedAt, path],
  isLess: (one, other) =>
    one.updatedAt === other.updatedAt
      ? isPathLess(one.path, other.path)
      : one.updatedAt < other.updatedAt,
}

const sizeKey: SortKey = {
  columns: ['size', 'path'],
  valuesOf: ({ size, path }) => [size, path],
  isLess: (one, other) =>
    one.size === other.size ? isPathLess(one.path, other.path) : one.size < other.size,
}

/** Equal times and sizes are ordered by path. */
export const orders: Record<OrderName, Order> = {
  path: orderBy(pathKey, '-path'),
  '-path': orderBy(pathKey, 'path', true),
  name: orderBy(nameKey, '-name'),
  '-name': orderBy(nameKey, 'name', true),
  updated_at: orderBy(timeKey, '-updated_at'),
  '-updated_at': orderBy(timeKey, 'updated_at', true),
  size: orderBy(sizeKey, '-size'),
  '-size': orderBy(sizeKey, 'size', true),
}

function orderBy(
  { columns, valuesOf, isLess }: SortKey,
  reversed: OrderName,
  isDescending = false,
): Order {
  const key = sql([columns.join(', ')])
  const later = isDescending ? '<' : '>'
  const compare = (operator: string, row: SortedFile) =>
    sql`(${key}) ${sql([operator])} (${list(valuesOf(row))})`
  return {
    column: columns[0] ?? '',
    by: isDescending ? sql([columns.map((column) => `${column} desc`).join(', ')]) : key,
    after: (row) => compare(later, row),
    from: (row) => compare(`${later}=`, row),
    precedes: isDescending ? (one, other) => isLess(other, one) : isLess,
    reversed,
  }
}

// Orders by UTF-8 bytes, as PostgreSQL does: UTF-16 order differs for surrogates.
function isPathLess(one: string, other: string): boolean {
  if (!surrogate.test(one) && !surrogate.test(other)) return one < other
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}

const surrogate = /[\ud800-\udfff]/
