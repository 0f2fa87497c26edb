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

type Value = string | number

interface SortKey {
  columns: string[]
  valuesOf: (row: SortedFile) => Value[]
}

const pathKey: SortKey = { columns: ['path'], valuesOf: ({ path }) => [path] }

const nameKey: SortKey = { columns: ['name'], valuesOf: ({ path }) => [nameOf(path)] }

const timeKey: SortKey = {
  columns: ['updated_at', 'path'],
  valuesOf: ({ updatedAt, path }) => [updatedAt, path],
}

const sizeKey: SortKey = {
  columns: ['size', 'path'],
  valuesOf: ({ size, path }) => [size, path],
}

/** Equal times and sizes follow their paths. */
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

function orderBy({ columns, valuesOf }: SortKey, reversed: OrderName, isDescending = false): Order {
  const key = sql([columns.join(', ')])
  const later = isDescending ? '<' : '>'
  const compare = (operator: string, row: SortedFile) =>
    sql`(${key}) ${sql([operator])} (${list(valuesOf(row))})`
  return {
    column: columns[0] ?? '',
    by: isDescending ? sql([columns.map((column) => `${column} desc`).join(', ')]) : key,
    after: (row) => compare(later, row),
    from: (row) => compare(`${later}=`, row),
    precedes: (one, other) =>
      isDescending
        ? isBefore(valuesOf(other), valuesOf(one))
        : isBefore(valuesOf(one), valuesOf(other)),
    reversed,
  }
}

function isBefore(one: Value[], other: Value[]): boolean {
  const at = one.findIndex((value, index) => value !== other[index])
  return at !== -1 && isLess(one[at] ?? '', other[at] ?? '')
}

// The order of UTF-8 bytes, as PostgreSQL's: that of UTF-16 differs where there are surrogates.
function isLess(one: Value, other: Value): boolean {
  if (!surrogate.test(`${one}`) && !surrogate.test(`${other}`)) return one < other
  return Buffer.compare(Buffer.from(`${one}`), Buffer.from(`${other}`)) < 0
}

const surrogate = /[\ud800-\udfff]/
