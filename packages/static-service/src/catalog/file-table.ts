import type { FileRow } from '../files/file-record.ts'

/** Contents that a transaction has left without references. */
export class FreedContents {
  readonly #sizes = new Map<string, number>()

  add(digest: string, size: number) {
    this.#sizes.set(digest, size)
  }

  /** It is referred to again. */
  keep(digest: string) {
    this.#sizes.delete(digest)
  }

  get digests(): string[] {
    return [...this.#sizes.keys()]
  }

  get bytes(): number {
    return [...this.#sizes.values()].reduce((total, size) => total + size, 0)
  }
}

/** The files inside a transaction, as the rules of commands see them, with every count that depends on them. */
export interface FileTable {
  find(path: string): FileRow | undefined

  isDirectory(path: string): boolean

  /** Files below a directory, by path; the root is empty. */
  findBelow(directory: string): FileRow[]

  /** Bytes of all distinct contents. */
  readonly storedSize: number

  /** Undefined, with nothing changed, when a directory of the path is a file. */
  add(row: Omit<FileRow, 'name'>, freed: FreedContents): FileRow | undefined

  replace(old: FileRow, row: FileRow, freed: FreedContents): void

  remove(row: FileRow, freed: FreedContents): void
}
