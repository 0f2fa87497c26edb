import { list, type Statement, sql } from '@domains-and-files/persistence'
import { nameOf } from '../../files/path-segments.ts'
import type { SortedFile, sorts } from '../list-query.ts'

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

/** Equal times and sizes follow their paths. */
export const orders: Record<OrderName, Order> = {
  path: ascending(pathKey, '-path'),
  '-path': descending(pathKey, 'path'),
  name: ascending(nameKey, '-name'),
  '-name': descending(nameKey, 'name'),
  updated_at: ascending(timeKey, '-updated_at'),
  '-updated_at': descending(timeKey, 'updated_at'),
  size: ascending(sizeKey, '-size'),
  '-size': descending(sizeKey, 'size'),
}

function ascending(key: SortKey, reversed: OrderName): Order {
  return {
    column: key.columns[0] ?? '',
    by: sql([key.columns.join(', ')]),
    after: (row) => comparison(key, '>', row),
    from: (row) => comparison(key, '>=', row),
    precedes: key.isLess,
    reversed,
  }
}

function descending(key: SortKey, reversed: OrderName): Order {
  return {
    column: key.columns[0] ?? '',
    by: sql([key.columns.map((column) => `${column} desc`).join(', ')]),
    after: (row) => comparison(key, '<', row),
    from: (row) => comparison(key, '<=', row),
    precedes: (one, other) => key.isLess(other, one),
    reversed,
  }
}

const comparison = ({ columns, valuesOf }: SortKey, operator: string, row: SortedFile): Statement =>
  sql`(${sql([columns.join(', ')])}) ${sql([operator])} (${list(valuesOf(row))})`

// The order of UTF-8 bytes, as PostgreSQL's: that of UTF-16 differs where there are surrogates.
function isPathLess(one: string, other: string): boolean {
  if (!surrogate.test(one) && !surrogate.test(other)) return one < other
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}

const surrogate = /[\ud800-\udfff]/
