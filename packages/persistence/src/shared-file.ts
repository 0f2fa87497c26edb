import { randomUUID } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { readFile, realpath, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createDirectory, fsyncDirectory, giveToOwner, writeNew } from './durable-files.ts'
import { withFileLock } from './file-lock.ts'

// Small files that a service reads while commands and other processes change them, such as users.json.

/**
 * Replaces a private file (0600) by the result of `change`, atomically, durably, and under a lock between processes.
 * `change` gets undefined if the file is missing; if it throws, nothing changes. A symbolic link stays, its target is
 * replaced.
 */
export async function updateFile(
  path: string,
  change: (text: string | undefined) => string,
): Promise<void> {
  await createDirectory(dirname(path))
  // One lock for all links to a file.
  const file = existsSync(path) ? await realpath(path) : path
  await withFileLock(`${file}.lock`, async () => {
    const text = existsSync(file) ? await readFile(file, 'utf8') : undefined
    await replaceFile(file, change(text))
  })
}

async function replaceFile(file: string, text: string) {
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    await writeNew(temporary, text)
    giveToOwner(temporary, existsSync(file) ? file : undefined)
    await rename(temporary, file)
  } finally {
    await rm(temporary, { force: true })
  }
  await fsyncDirectory(dirname(file))
}

/** The content of a file as `read` returns it, read again whenever the file has changed. `read` does not throw. */
export class FileView<Content> {
  readonly #file: string
  readonly #read: () => Content
  #version: ReturnType<typeof versionOf>
  #content: Content

  constructor(file: string, read: () => Content) {
    this.#file = file
    this.#read = read
    this.#version = versionOf(file)
    this.#content = read()
  }

  get current(): Content {
    // A stat costs microseconds. A watch can miss changes in mounted directories.
    const version = versionOf(this.#file)
    if (version.id !== this.#version.id || this.#version.isRecent) {
      this.#version = version // Taken before reading: the next look-up then sees a change in between.
      this.#content = this.#read()
    }
    return this.#content
  }
}

// A file may change twice within one clock tick, so a recent one is read again although its times are equal.
const recentMs = 50

function versionOf(file: string) {
  try {
    // Not as bigints, which take longer: these times are exact to less than a microsecond.
    const { ino, size, mtimeMs, ctimeMs } = statSync(file)
    return { id: `${ino} ${size} ${mtimeMs} ${ctimeMs}`, isRecent: Date.now() - ctimeMs < recentMs }
  } catch {
    return { id: 'unreadable', isRecent: false } // Reading it gives the reason.
  }
}
