import type { FileRow } from '../../../files/file-record.ts'
import type { sorts } from '../../list-query.ts'
import type { Parameters } from '../parameters.ts'

/** A total order of files that an index provides. */
export interface Order {
  by: string
  /** Condition for the rows from a given row on, itself included. */
  from: (row: FileRow, parameters: Parameters) => string
  reversed: keyof typeof orders
}

type Orders = Record<(typeof sorts)[number] | 'name' | '-name', Order>

/** Equal times and sizes follow their paths. Inside one directory, names are in the order of paths. */
export const orders: Orders = {
  path: {
    by: 'path',
    from: ({ path }, parameters) => `path >= ${parameters.add(path)}`,
    reversed: '-path',
  },
  '-path': {
    by: 'path desc',
    from: ({ path }, parameters) => `path <= ${parameters.add(path)}`,
    reversed: 'path',
  },
  name: {
    by: 'name',
    from: ({ name }, parameters) => `name >= ${parameters.add(name)}`,
    reversed: '-name',
  },
  '-name': {
    by: 'name desc',
    from: ({ name }, parameters) => `name <= ${parameters.add(name)}`,
    reversed: 'name',
  },
  updated_at: {
    by: 'updated_at, path',
    from: ({ updatedAt, path }, parameters) =>
      `(updated_at, path) >= (${parameters.add(updatedAt)}, ${parameters.add(path)})`,
    reversed: '-updated_at',
  },
  '-updated_at': {
    by: 'updated_at desc, path desc',
    from: ({ updatedAt, path }, parameters) =>
      `(updated_at, path) <= (${parameters.add(updatedAt)}, ${parameters.add(path)})`,
    reversed: 'updated_at',
  },
  size: {
    by: 'size, path',
    from: ({ size, path }, parameters) =>
      `(size, path) >= (${parameters.add(size)}, ${parameters.add(path)})`,
    reversed: '-size',
  },
  '-size': {
    by: 'size desc, path desc',
    from: ({ size, path }, parameters) =>
      `(size, path) <= (${parameters.add(size)}, ${parameters.add(path)})`,
    reversed: 'size',
  },
}
