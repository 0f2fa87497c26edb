import { list, type Statement, sql } from '@domains-and-files/persistence'
import { nameOf } from '../files/file-path.ts'
import type { Category } from '../files/media-type.ts'
import type { FileRow } from './tables.ts'

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
  page_size: number
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

const values = {
  path: ({ path }: SortedFile) => path,
  name: ({ path }: SortedFile) => nameOf(path),
  updated_at: ({ updatedAt }: SortedFile) => updatedAt,
  size: ({ size }: SortedFile) => size,
}

type Column = keyof typeof values

export type OrderName = Column | `-${Column}`

/** The order that a list is read along: the index of a directory has its files by name. */
export function orderOf({ sort, category, search, recursive = true }: ListQuery): OrderName {
  if (recursive || category || search) return sort
  return sort === 'path' ? 'name' : sort === '-path' ? '-name' : sort
}

/** Equal times and sizes are ordered by path. */
export const orders = Object.fromEntries(
  (Object.keys(values) as Column[]).flatMap((column) => [
    [column, orderBy(column, { isDescending: false, reversed: `-${column}` })],
    [`-${column}`, orderBy(column, { isDescending: true, reversed: column })],
  ]),
) as Record<OrderName, Order>

function orderBy(column: Column, { isDescending, reversed }: { isDescending: boolean; reversed: OrderName }): Order {
  const columns: Column[] = column === 'path' || column === 'name' ? [column] : [column, 'path']
  const valuesOf = (row: SortedFile) => columns.map((each) => values[each](row))
  const later = isDescending ? '<' : '>'
  const compare = (operator: string, row: SortedFile) =>
    sql`(${sql([columns.join(', ')])}) ${sql([operator])} (${list(valuesOf(row))})`
  const isLess = (one: SortedFile, other: SortedFile) => {
    const differing = columns.find((each) => values[each](one) !== values[each](other))
    return differing !== undefined && isValueLess(values[differing](one), values[differing](other))
  }
  return {
    column,
    by: sql([columns.map((each) => (isDescending ? `${each} desc` : each)).join(', ')]),
    after: (row) => compare(later, row),
    from: (row) => compare(`${later}=`, row),
    precedes: isDescending ? (one, other) => isLess(other, one) : isLess,
    reversed,
  }
}

// Orders text by its UTF-8 bytes, as both databases do: UTF-16 order differs for surrogates.
function isValueLess<Value extends string | number>(one: Value, other: Value): boolean {
  if (typeof one === 'number' || typeof other === 'number') return one < other
  if (!surrogate.test(one) && !surrogate.test(other)) return one < other
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0
}

const surrogate = /[\ud800-\udfff]/
