import { get } from '../../api/client.js'
import { byName, formatNumber } from '../../ui/format.js'

const pageSize = 200
const maxChosen = 5000
const maxSorted = 2000
// Rows that are only scrolled past are not loaded.
const restMs = 60

/** A list of files of any length, loaded page by page as rows come into sight. */
export class FileSource {
  total = 0
  isExact = true
  /** Whether "part 2" comes before "part 10"; the service sorts names by their bytes. */
  isNatural = false
  #query
  #signal
  /** Undefined: on its way, or failed, until another source is opened. @type {Map<number, Api.FileRecord[] | undefined>} */
  #pages = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting

  /** @param {Record<string, string | undefined>} query @param {AbortSignal} signal */
  constructor(query, signal) {
    this.#query = query
    this.#signal = signal
  }

  /** With the rows that are wanted first. @param {number} first @param {number} last one past the last row */
  async open(first, last) {
    if (this.isByName) await this.#load([0])
    if (this.isByName && this.total <= maxSorted) await this.#sort()
    else await this.#load(this.#missing(first, last))
    return this
  }

  /** The file in that row; undefined: not loaded yet. @param {number} index */
  at(index) {
    return this.#pages.get(Math.floor(index / pageSize))?.[index % pageSize]
  }

  /**
   * Loads the pages that hold these rows, once the list rests there.
   * @param {number} first
   * @param {number} last one past the last row
   * @param {(error?: unknown) => void} onLoaded
   */
  want(first, last, onLoaded) {
    clearTimeout(this.#resting)
    this.#resting = setTimeout(() => {
      const missing = this.#missing(first, last)
      if (missing.length > 0) this.#load(missing).then(() => onLoaded(), onLoaded)
    }, restMs)
  }

  /** All files of the list, for a change of all of them. */
  async all() {
    if (this.total > maxChosen)
      throw new Error(`More than ${formatNumber(maxChosen)} files: move or delete their folder instead.`)
    const pages = Array.from({ length: Math.ceil(this.total / pageSize) }, (_, page) => page)
    await this.#load(pages.filter((page) => !this.#pages.get(page)))
    return pages.flatMap((page) => this.#pages.get(page) ?? [])
  }

  /** Whether it is what lies in one folder, by name. */
  get isByName() {
    const { recursive, sort } = this.#query
    return recursive === 'false' && (sort === 'path' || sort === '-path')
  }

  /** @param {number} first @param {number} last */
  #missing(first, last) {
    const from = Math.floor(first / pageSize)
    const length = Math.floor(Math.max(first, last - 1) / pageSize) - from + 1
    const pages = Array.from({ length }, (_, at) => from + at)
    return pages.filter((page) => !this.#pages.has(page))
  }

  /** @param {number[]} pages */
  async #load(pages) {
    for (const page of pages) this.#pages.set(page, undefined)
    const signal = this.#signal
    await Promise.all(
      pages.map(async (page) => {
        const query = { ...this.#query, page: page + 1, page_size: pageSize }
        const { files, pagination } = await get('files', '/api/files', { query, signal })
        this.total = pagination.total_items
        this.isExact = pagination.total_is_exact !== false
        this.#pages.set(page, files)
      }),
    )
  }

  // The order in which people count needs all names.
  async #sort() {
    const all = (await this.all()).sort(byName)
    if (this.#query.sort === '-path') all.reverse()
    for (const page of this.#pages.keys()) this.#pages.set(page, all.slice(page * pageSize, (page + 1) * pageSize))
    this.isNatural = true
  }
}
