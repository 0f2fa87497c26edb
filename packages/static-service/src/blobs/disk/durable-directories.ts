import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fsyncDirectory } from '@domains-and-files/persistence'
import { folderMode } from '../blob-path.ts'

/**
 * Directories below a root, created on demand. `ensure` resolves once the entry of each is fsynced, for concurrent callers
 * too, and for a directory that existed: the process that created it may have been killed before the fsync.
 */
export class DurableDirectories {
  readonly #root: string
  readonly #ensured = new Map<string, Promise<void>>()

  constructor(root: string) {
    this.#root = root
  }

  async ensure(...names: string[]): Promise<string> {
    let directory = this.#root
    for (const name of names) {
      directory = join(directory, name)
      await this.#ensureOne(directory)
    }
    return directory
  }

  #ensureOne(directory: string): Promise<void> {
    const known = this.#ensured.get(directory)
    if (known) return known
    const creating = create(directory)
    this.#ensured.set(directory, creating)
    creating.catch(() => this.#ensured.delete(directory))
    return creating
  }
}

async function create(directory: string) {
  // Recursive only so that an existing directory is no error.
  await mkdir(directory, { recursive: true, mode: folderMode })
  await fsyncDirectory(dirname(directory))
}
