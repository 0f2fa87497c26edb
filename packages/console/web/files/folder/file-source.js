import { listFiles } from '../../api/static-service.js'

/** @import { FileRecord } from '../../api/schema.d.ts' */

const pageSize = 200

/**
 * A list of files of any length, loaded page by page as rows come into sight.
 * @typedef {Record<string, string | number | undefined>} FileQuery
 */
export class FileSource {
  total = 0
  isExact = true
  isReady = false
  /** @type {unknown} */
  error
  #query
  #onChange
  #signal
  /** @type {Map<number, readonly FileRecord[] | 'loading'>} */
  #pages = new Map()

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
    this.want(range.first, range.last)
  }

  /** The file in that row; undefined: not loaded yet. @param {number} index */
  at(index) {
    const page = this.#pages.get(Math.floor(index / pageSize))
    return page === 'loading' ? undefined : page?.[index % pageSize]
  }

  /** Loads the pages that hold these rows. @param {number} first @param {number} last one past the last row */
  want(first, last) {
    const end = Math.max(first, last - 1)
    for (let page = Math.floor(first / pageSize); page <= Math.floor(end / pageSize); page += 1) {
      if (!this.#pages.has(page)) void this.#load(page)
    }
  }

  /** @param {number} page */
  async #load(page) {
    this.#pages.set(page, 'loading')
    try {
      const query = { ...this.#query, page: page + 1, page_size: pageSize }
      const { files, pagination } = await listFiles(query, this.#signal)
      this.#pages.set(page, files)
      this.total = pagination.total_items
      this.isExact = pagination.total_is_exact !== false
      this.isReady = true
      this.error = undefined
    } catch (error) {
      this.#pages.delete(page)
      if (this.#signal.aborted) return
      this.error = error
    }
    this.#onChange()
  }
}
