import { randomUUID } from 'node:crypto'
import { readFile, realpath, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createDirectory, fsyncDirectory, giveToOwner, writeNew } from './durable-files.ts'
import { withFileLock } from './file-lock.ts'

/**
 * Replaces a private file (0600) by the result of `change`: atomically, durably, and locked between processes. `change`
 * gets undefined if the file is missing; if it throws, nothing changes. Of a symbolic link the target is replaced.
 */
export async function updateFile(
  path: string,
  change: (text: string | undefined) => string,
): Promise<void> {
  await createDirectory(dirname(path))
  // One lock for all links to a file.
  const file = (await realpath(path).catch(ignoreMissing)) ?? path
  await withFileLock(`${file}.lock`, async () => {
    const text = await readFile(file, 'utf8').catch(ignoreMissing)
    await replaceFile(file, change(text), text === undefined ? undefined : file)
  })
}

// Only ENOENT means missing: any other error could be a failing disk.
function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Creates or replaces a private file atomically and durably. As root, it belongs to the owner of `before` or its folder. */
export async function replaceFile(file: string, content: Buffer | string, before?: string) {
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    await writeNew(temporary, content)
    giveToOwner(temporary, before)
    await rename(temporary, file)
  } finally {
    await rm(temporary, { force: true })
  }
  await fsyncDirectory(dirname(file))
}
