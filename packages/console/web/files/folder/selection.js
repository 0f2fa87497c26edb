/**
 * The chosen rows of a folder. Directories count with all that is below them.
 * @import { DirectoryNode, FileRecord } from '../../api/schema.d.ts'
 */
export class Selection {
  /** @type {Map<string, FileRecord>} */
  #files = new Map()
  /** @type {Map<string, DirectoryNode>} */
  #directories = new Map()
  #onChange

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange
  }

  get size() {
    return this.#files.size + this.#directories.size
  }

  get files() {
    return [...this.#files.values()]
  }

  get directories() {
    return [...this.#directories.values()]
  }

  get bytes() {
    const sizes = [
      ...this.files.map(({ size }) => size),
      ...this.directories.map(({ total_size: size }) => size),
    ]
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  /** @param {FileRecord | DirectoryNode} entry */
  has(entry) {
    return 'sha256' in entry ? this.#files.has(entry.path) : this.#directories.has(entry.path)
  }

  /** @param {FileRecord | DirectoryNode} entry */
  toggle(entry) {
    if ('sha256' in entry) {
      if (!this.#files.delete(entry.path)) this.#files.set(entry.path, entry)
    } else if (!this.#directories.delete(entry.path)) this.#directories.set(entry.path, entry)
    this.#onChange()
  }

  clear() {
    this.#files.clear()
    this.#directories.clear()
    this.#onChange()
  }
}
