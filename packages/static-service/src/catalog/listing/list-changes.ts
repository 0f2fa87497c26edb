import { parentOf } from '../../files/path-segments.ts'
import { fold } from '../fold.ts'
import type { ChangedFile, ListedState } from './changed-files.ts'
import { type OrderName, orders, type SortedFile } from './list-order.ts'

/** Which files a list has: the first fields of `keyOf`. */
export type ListedFiles = [
  search: string | null,
  category: string | null,
  prefix: string | null,
  recursive: boolean | null,
]

/** What commits changed, as lists see it. */
export class ListChanges {
  readonly #files: (ChangedFile & { folded: string })[]

  constructor(changed: ChangedFile[]) {
    this.#files = changed.map((file) => ({ ...file, folded: fold(file.path) }))
  }

  get size(): number {
    return this.#files.length
  }

  /** Whether a list has, or had, one of the files. */
  concern(list: ListedFiles): boolean {
    return this.#files.some((file) => isIn(list, file, file.before) || isIn(list, file, file.after))
  }

  /** By how many rows the position of a file in a list has moved, whether the file still exists or not. */
  shiftsIn(list: ListedFiles, order: OrderName): (row: SortedFile) => number {
    const removed = this.#files.flatMap((file) =>
      isIn(list, file, file.before) ? { path: file.path, ...file.before } : [],
    )
    const added = this.#files.flatMap((file) =>
      isIn(list, file, file.after) ? { path: file.path, ...file.after } : [],
    )
    return (row) => {
      const isBefore = (file: SortedFile) => orders[order].precedes(file, row)
      return added.filter(isBefore).length - removed.filter(isBefore).length
    }
  }
}

function isIn(
  [search, category, prefix, recursive]: ListedFiles,
  { path, folded }: { path: string; folded: string },
  state: ListedState | null,
): state is ListedState {
  if (!state || (category && state.category !== category)) return false
  if (search && !folded.includes(search)) return false
  if (recursive === false) return parentOf(path) === (prefix ?? '')
  return !prefix || path.startsWith(`${prefix}/`)
}
