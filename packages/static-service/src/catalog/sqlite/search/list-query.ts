import type { sorts } from '../../list-query.ts'

/** A total order of files that an index provides. */
export interface Order {
  by: string
  /** Condition for the rows from a given row on, itself included. */
  from: string
  reversed: keyof typeof orders
}

type Orders = Record<(typeof sorts)[number] | 'name' | '-name', Order>

/** Equal times and sizes follow their paths. Inside one directory, names are in the order of paths. */
export const orders: Orders = {
  path: { by: 'path', from: 'path >= @path', reversed: '-path' },
  '-path': { by: 'path desc', from: 'path <= @path', reversed: 'path' },
  name: { by: 'name', from: 'name >= @name', reversed: '-name' },
  '-name': { by: 'name desc', from: 'name <= @name', reversed: 'name' },
  updated_at: {
    by: 'updated_at, path',
    from: '(updated_at, path) >= (@updatedAt, @path)',
    reversed: '-updated_at',
  },
  '-updated_at': {
    by: 'updated_at desc, path desc',
    from: '(updated_at, path) <= (@updatedAt, @path)',
    reversed: 'updated_at',
  },
  size: { by: 'size, path', from: '(size, path) >= (@size, @path)', reversed: '-size' },
  '-size': {
    by: 'size desc, path desc',
    from: '(size, path) <= (@size, @path)',
    reversed: 'size',
  },
}

/** SQL condition with the values that it names. */
export interface Filter {
  conditions: string[]
  values: Record<string, unknown>
}

/** The directory that a list is restricted to. */
export interface Scope {
  /** Its files by the index of paths, which every order contains. */
  byPath: Filter
  /** Its files by the shortest index: of the directory where only direct files are listed. */
  direct: Filter
  isRecursive: boolean
  /** Number of files in it. */
  size: number
}

/** Restricts paths to those below a directory, at any depth or directly in it. */
export function filterByPath(prefix: string, isRecursive: boolean): Filter {
  const start = prefix === '' ? '' : `${prefix}/`
  const conditions = prefix === '' ? [] : ['path > @start', 'path < @end']
  if (!isRecursive) conditions.push("instr(substr(path, @rest), '/') = 0")
  // `0` is the character after `/`; SQLite counts code points from 1.
  return { conditions, values: { start, end: `${prefix}0`, rest: [...start].length + 1 } }
}
