import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fsyncDirectory } from '@domains-and-files/persistence'
import { folderMode } from '../blob-path.ts'

/**
 * The folders below a root, made as they are needed. A folder is entered durably before anybody is told that it is
 * there, also who comes while another makes it, and also when it stood there before: whoever made it may have been
 * killed before its entry was flushed.
 */
export class DurableDirectories {
  readonly #root: string
  readonly #made = new Map<string, Promise<void>>()

  constructor(root: string) {
    this.#root = root
  }

  async ensure(...names: string[]): Promise<string> {
    let folder = this.#root
    for (const name of names) {
      folder = join(folder, name)
      await this.#ensureOne(folder)
    }
    return folder
  }

  #ensureOne(folder: string): Promise<void> {
    const known = this.#made.get(folder)
    if (known) return known
    const making = enter(folder)
    this.#made.set(folder, making)
    making.catch(() => this.#made.delete(folder))
    return making
  }
}

async function enter(folder: string) {
  // Recursive only so that an existing one is no error: what is above it is there.
  await mkdir(folder, { recursive: true, mode: folderMode })
  await fsyncDirectory(dirname(folder))
}
