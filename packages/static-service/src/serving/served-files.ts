import type { Catalog } from '../catalog/catalog.ts'
import type { FileRow } from '../files/file-record.ts'
import { LruLoader } from './lru-loader.ts'
import { hasReliableDate, type ServedFile } from './served-file.ts'

type Describe = (row: FileRow) => ServedFile

/** The files by path, as they are served. Never stale: a change that has been answered is seen by every later call. */
export interface ServedFiles {
  /** The file that is at this path now. Uses the look-up that `confirm` began for the same request, if there is one. */
  find(path: string, request?: object): ServedFile | undefined | Promise<ServedFile | undefined>

  /** The file that was there when it was last looked up. */
  peek(path: string): ServedFile | undefined

  /** Looks the file up, where that needs no waiting; undefined while its date is not reliable at `now`. */
  findNow(path: string, now: number): ServedFile | undefined

  /** Whether a file that `peek` returned is still the one at its path. */
  confirm(file: ServedFile, request: object): true | Promise<boolean>

  /** Looks the file up again next time. */
  invalidate(file: ServedFile): void

  /** For the cache metrics. */
  readonly memory: LruLoader<ServedFile>
}

interface Dependencies {
  catalog: Catalog
  memoryBytes: number
  describe: Describe
}

/** Remembers files where this process alone changes the catalog; otherwise reads the catalog for each request. */
export const createServedFiles = (dependencies: Dependencies): ServedFiles =>
  dependencies.catalog.isExclusive
    ? new RememberedFiles(dependencies)
    : new CheckedFiles(dependencies)

const newMemory = (memoryBytes: number) => new LruLoader<ServedFile>(memoryBytes, () => 4096)

/** The catalog's change event, which precedes the response to the change, invalidates what is remembered. */
class RememberedFiles implements ServedFiles {
  readonly memory: LruLoader<ServedFile>
  readonly #catalog: Catalog
  readonly #describe: Describe

  constructor({ catalog, memoryBytes, describe }: Dependencies) {
    this.memory = newMemory(memoryBytes)
    this.#catalog = catalog
    this.#describe = describe
    catalog.onChange((paths) => this.memory.invalidate(paths))
  }

  find(path: string) {
    return this.memory.get(path, async () => {
      const row = await this.#catalog.find(path)
      return row && this.#describe(row)
    })
  }

  peek(path: string): ServedFile | undefined {
    return this.memory.inspect(path)
  }

  findNow(path: string, now: number): ServedFile | undefined {
    const row = this.#catalog.findNow?.(path)
    const file = row && this.#describe(row)
    if (!file || !hasReliableDate(file, now)) return undefined
    this.memory.counts.miss += 1
    this.memory.set(path, file)
    return file
  }

  confirm(): true {
    return true
  }

  invalidate({ row }: ServedFile) {
    this.memory.invalidate([row.path])
  }
}

/** Reads each row; memory only spares describing a row that has not changed. */
class CheckedFiles implements ServedFiles {
  readonly memory: LruLoader<ServedFile>
  readonly #catalog: Catalog
  readonly #describe: Describe
  readonly #pending = new WeakMap<object, { path: string; file: Promise<ServedFile | undefined> }>()

  constructor({ catalog, memoryBytes, describe }: Dependencies) {
    this.memory = newMemory(memoryBytes)
    this.#catalog = catalog
    this.#describe = describe
  }

  find(path: string, request?: object) {
    const pending = request && this.#pending.get(request)
    return pending?.path === path ? pending.file : this.#read(path)
  }

  peek(path: string): ServedFile | undefined {
    return this.memory.inspect(path)
  }

  findNow(): undefined {
    return undefined
  }

  async confirm(file: ServedFile, request: object): Promise<boolean> {
    const { path } = file.row
    const found = this.#read(path)
    this.#pending.set(request, { path, file: found })
    return (await found) === file
  }

  // The next look-up reads the row anyway.
  invalidate({ row }: ServedFile) {
    this.memory.invalidate([row.path])
  }

  async #read(path: string): Promise<ServedFile | undefined> {
    const row = await this.#catalog.find(path)
    if (!row) return undefined
    const known = this.memory.inspect(path)
    // The catalog returns the same object while the file has not changed.
    if (known?.row === row) {
      this.memory.counts.hit += 1
      return known
    }
    this.memory.counts.miss += 1
    const file = this.#describe(row)
    this.memory.set(path, file)
    return file
  }
}
