import { chownSync, lchownSync } from 'node:fs'
import { copyFile, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { lockDataDir, lockFile, lockNames, underRestore } from '../data-dir-lock.ts'
import { createDirectory, fsyncDirectory, ownerFor } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import { type BackupJob, type BlobSource, checkAll } from './backup.ts'
import { copyBlobs } from './blob-files.ts'
import { digestOf, readManifest } from './manifest.ts'

/**
 * Brings a backup into an empty data folder of no running service. All is built in a folder within, and put in place
 * once it is whole and flushed; while that folder is there, no service starts.
 * @throws {DataDirError}
 */
export async function restore(work: BackupJob): Promise<BlobSource> {
  const { layout, signal, progress } = work
  const from = resolve(work.folder)
  const dataDir = resolve(work.dataDir)
  const { files } = await readManifest(from, layout.service)
  await createDirectory(dataDir)
  const unlock = await takeEmpty(dataDir)
  const into = underRestore(dataDir)
  try {
    await mkdir(into, { mode: 0o700 })
    for (const { name, sha256 } of files)
      await bringSmall(join(from, name), join(into, name), sha256)
    const contents = layout.contents(join(into, layout.database))
    progress.begin('copied', contents)
    await copyBlobs(contents.each, { from, to: into, signal, onKept: progress.kept })
    await checkAll(work, into)
    await giveAway(dataDir, into)
    await fsyncDirectory(into)
  } catch (error) {
    await rm(into, { recursive: true, force: true })
    unlock()
    throw error
  }
  for (const name of await readdir(into)) await rename(join(into, name), join(dataDir, name))
  await fsyncDirectory(dataDir)
  await rmdir(into)
  await fsyncDirectory(dataDir)
  unlock()
  return layout.contents(join(dataDir, layout.database))
}

// The folder of a volume holds `lost+found` from the beginning.
async function takeEmpty(dataDir: string): Promise<() => void> {
  const names = await readdir(dataDir)
  const others = names.filter((name) => !lockNames.includes(name) && name !== 'lost+found')
  // A service that runs is told of first: it is the better reason.
  if (names.includes(lockFile) || others.length === 0) {
    const unlock = lockDataDir(dataDir)
    if (others.length === 0) return unlock
    unlock()
  }
  throw new DataDirError(`${dataDir} is not empty: a restore overwrites nothing.`)
}

// Never a link: unlike contents these are written to later.
async function bringSmall(from: string, to: string, sha256: string) {
  await copyFile(from, to)
  await using handle = await open(to, 'r+')
  await handle.chmod(0o600)
  await handle.sync()
  if ((await digestOf(to)) !== sha256) throw new DataDirError(`${from} has been altered.`)
}

async function giveAway(dataDir: string, made: string) {
  const owner = ownerFor(dataDir)
  if (!owner) return
  chownSync(made, owner.uid, owner.gid)
  for (const entry of await readdir(made, { recursive: true, withFileTypes: true })) {
    lchownSync(join(entry.parentPath, entry.name), owner.uid, owner.gid)
  }
}
