import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, realpath, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createDirectory, fsyncDirectory, giveToOwner, writeNew } from './durable-files.ts'
import { withFileLock } from './file-lock.ts'

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
