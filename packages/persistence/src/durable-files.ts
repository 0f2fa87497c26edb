import { chownSync, closeSync, openSync, statSync } from 'node:fs'
import { mkdir, open, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** Makes creations, renames and removals in this directory survive a power loss. */
export async function fsyncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Creates a directory (0700) and its missing parents, each entry fsynced. */
export async function createDirectory(directory: string): Promise<void> {
  const wanted = resolve(directory)
  if (await isDirectory(wanted)) return
  const parent = dirname(wanted)
  if (parent !== wanted) await createDirectory(parent)
  // Not `recursive`: Node loops forever if mkdir fails with ENOENT below an existing directory, as in procfs.
  try {
    await mkdir(wanted, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!(await isDirectory(wanted))) throw error
  }
  await fsyncDirectory(parent)
}

const isDirectory = async (path: string) =>
  (await stat(path, { throwIfNoEntry: false }))?.isDirectory() ?? false

/** Writes a new private file (0600); durable once its directory is fsynced. */
export async function writeNew(file: string, bytes: Buffer | string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(bytes)
  await handle.sync()
}

/** Creates a private file (0600) if it is missing, for the owner of its directory. */
export function ensurePrivateFile(file: string) {
  closeSync(openSync(file, 'a', 0o600))
  giveToOwner(file)
}

/** The owner of a path, if this process is root; otherwise undefined. */
export function ownerFor(path: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = statSync(path)
  return uid === 0 ? undefined : { uid, gid }
}

/** As root, gives a new file to the owner of `like` (default: its directory), so that the service can use it. */
export function giveToOwner(file: string, like = dirname(file)) {
  const owner = ownerFor(like)
  if (owner) chownSync(file, owner.uid, owner.gid)
}
