import { chownSync, statSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Makes what was created, renamed or removed in this folder survive a loss of power. */
export async function fsyncDirectory(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes a folder with all above it, each entered durably in the one that holds it. */
export async function createDirectory(folder: string): Promise<void> {
  const wanted = resolve(folder)
  const first = await mkdir(wanted, { recursive: true, mode: 0o700 })
  if (!first) return
  for (let made = wanted; ; made = dirname(made)) {
    await fsyncDirectory(dirname(made))
    if (made === first) return
  }
}

/** Writes a new private file, durably once its folder is flushed. */
export async function writeNew(file: string, bytes: Buffer | string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(bytes)
  await handle.sync()
}

/** Whose a folder is where root works in it for a service that runs as another user; else nothing. */
export function ownerFor(folder: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = statSync(folder)
  return uid === 0 ? undefined : { uid, gid }
}

/** What root made in a service's folder is given to that service, which must be able to use it. */
export function giveToOwner(folder: string, file: string) {
  const owner = ownerFor(folder)
  if (owner) chownSync(file, owner.uid, owner.gid)
}
