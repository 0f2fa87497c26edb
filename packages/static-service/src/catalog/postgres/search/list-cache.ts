import { parentOf } from '../../../files/path-segments.ts'
import { fold } from '../../fold.ts'
import { keyOf, type ListQuery } from '../../list-query.ts'
import { SeekCache } from '../../seek-cache.ts'

const maxCachedResults = 64

/** What is known about lists at one revision of the catalog. */
export class ListCache {
  readonly revision: number
  readonly positions: SeekCache
  readonly #results: Map<string, string[] | undefined>

  constructor(
    revision: number,
    positions = new SeekCache(),
    results = new Map<string, string[] | undefined>(),
  ) {
    this.revision = revision
    this.positions = positions
    this.#results = results
    this.positions.enter(revision)
  }

  /** What still holds at a later revision, when the files at these paths have changed: lists that none of them is in. */
  after(revision: number, changed: string[]): ListCache {
    const files = changed.map((path) => ({ path, folded: fold(path) }))
    const isSame = (key: string) => {
      const list: ListedPaths = JSON.parse(key)
      return !files.some((file) => canContain(list, file))
    }
    const results = [...this.#results].filter(([key]) => isSame(key))
    return new ListCache(revision, this.positions.copy(revision, isSame), new Map(results))
  }

  /** What `addResults` was given for this list. */
  results(query: ListQuery): { ids: string[] | undefined } | undefined {
    const key = listKey(query)
    return this.#results.has(key) ? { ids: this.#results.get(key) } : undefined
  }

  /** Ids of all files of a list, for its next pages; undefined: they are more than are counted. */
  addResults(query: ListQuery, ids: string[] | undefined): void {
    if (this.#results.size >= maxCachedResults) this.#results.clear()
    this.#results.set(listKey(query), ids)
  }
}

/** The key of a list; of one in a particular order, if that is given. */
export const listKey = (query: ListQuery, order?: string) =>
  JSON.stringify(order === undefined ? keyOf(query) : [...keyOf(query), order])

// The first fields of a key.
type ListedPaths = [
  search: string | null,
  category: string | null,
  prefix: string | null,
  recursive: boolean | null,
]

// Whatever its category is and was.
function canContain(
  [search, , prefix, recursive]: ListedPaths,
  { path, folded }: { path: string; folded: string },
): boolean {
  if (search && !folded.includes(search)) return false
  if (recursive === false) return parentOf(path) === (prefix ?? '')
  return !prefix || path.startsWith(`${prefix}/`)
}
