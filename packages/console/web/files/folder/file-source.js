import { get } from '../../api/client.js'
import { byName } from '../../ui/format.js'

const pageSize = 200
const maxChosen = 5000
const maxSorted = 2000
// Rows that are only scrolled past are not loaded.
const restMs = 60

/**
 * A list of files of any length, loaded page by page as rows come into sight.
 * @typedef {Record<string, string | number | undefined>} FileQuery
 */
export class FileSource {
  total = 0
  isExact = true
  isReady = false
  /** Whether "part 2" comes before "part 10"; the service sorts names by their bytes. */
  isNatural = false
  /** @type {unknown} */
  error
  #query
  #onChange
  #signal
  /** @type {Map<number, readonly Api.FileRecord[] | 'loading' | 'failed'>} a failed page is loaded again by a new source only */
  #pages = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting

  /**
   * @param {FileQuery} query
   * @param {{ first: number, last: number }} range the rows that are wanted first
   * @param {() => void} onChange
   * @param {AbortSignal} signal
   */
  constructor(query, range, onChange, signal) {
    this.#query = query
    this.#onChange = onChange
    this.#signal = signal
    this.#loadRange(range.first, range.last)
  }

  /** The file in that row; undefined: not loaded yet. @param {number} index */
  at(index) {
    const page = this.#pages.get(Math.floor(index / pageSize))
    return Array.isArray(page) ? page[index % pageSize] : undefined
  }

  /**
   * Loads the pages that hold these rows, once the list rests there.
   * @param {number} first
   * @param {number} last one past the last row
   */
  want(first, last) {
    clearTimeout(this.#resting)
    this.#resting = setTimeout(() => this.#loadRange(first, last), restMs)
  }

  /** All files of the list, for a change of all of them. */
  async all() {
    if (this.total > maxChosen)
      throw new Error(`More than ${maxChosen} files: move or delete their folder instead.`)
    const pages = this.#pageNumbers()
    for (const page of pages) if (!Array.isArray(this.#pages.get(page))) await this.#load(page)
    return pages.flatMap((page) => {
      const files = this.#pages.get(page)
      return Array.isArray(files) ? files : []
    })
  }

  #pageNumbers() {
    return Array.from({ length: Math.ceil(this.total / pageSize) }, (_, page) => page)
  }

  /** @param {number} first @param {number} last */
  #loadRange(first, last) {
    const isNamed = this.isByName && !this.#pages.has(0)
    if (isNamed) return void this.#load(0).then(() => this.#loadRange(first, last))
    const end = Math.max(first, last - 1)
    for (let page = Math.floor(first / pageSize); page <= Math.floor(end / pageSize); page += 1) {
      if (!this.#pages.has(page) && !this.#signal.aborted) void this.#load(page)
    }
  }

  /** @param {number} page */
  async #load(page) {
    this.#pages.set(page, 'loading')
    try {
      this.#pages.set(page, await this.#read(page))
      if (page === 0 && this.isByName && this.total <= maxSorted) await this.#sort()
      this.isReady = true
      this.error = undefined
    } catch (error) {
      this.#pages.set(page, 'failed')
      if (this.#signal.aborted) return
      this.error = error
    }
    this.#onChange()
  }

  /** @param {number} page */
  async #read(page) {
    const query = { ...this.#query, page: page + 1, page_size: pageSize }
    const { files, pagination } = await get('files', '/api/files', { query, signal: this.#signal })
    this.total = pagination.total_items
    this.isExact = pagination.total_is_exact !== false
    return files
  }

  /** Whether it is what lies in one folder, by name. */
  get isByName() {
    const { recursive, sort } = this.#query
    return recursive === 'false' && (sort === 'path' || sort === '-path')
  }

  // The order in which people count needs all names.
  async #sort() {
    const first = this.#pages.get(0)
    const further = this.#pageNumbers().slice(1)
    const rest = await Promise.all(further.map((page) => this.#read(page)))
    const all = [...(Array.isArray(first) ? first : []), ...rest.flat()].sort(byName)
    if (this.#query.sort === '-path') all.reverse()
    for (const page of this.#pageNumbers())
      this.#pages.set(page, all.slice(page * pageSize, (page + 1) * pageSize))
    this.isNatural = true
  }
}
