import { mkdir, open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/** Makes what was created, renamed or removed in this folder survive a loss of power. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes a folder with all above it, each entered durably in the one that holds it. */
export async function makeFolder(folder: string): Promise<void> {
  const wanted = resolve(folder)
  const first = await mkdir(wanted, { recursive: true, mode: 0o700 })
  if (!first) return
  for (let made = wanted; ; made = dirname(made)) {
    await syncFolder(dirname(made))
    if (made === first) return
  }
}

/**
 * The folders below a root, made as they are needed. A folder is entered durably before anybody is told that it is
 * there, also who comes while another makes it, and also when it stood there before: whoever made it may have been
 * killed before its entry was flushed.
 */
export class Folders {
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
  await mkdir(folder, { recursive: true, mode: 0o750 })
  await syncFolder(dirname(folder))
}
