import { chownSync, lchownSync } from 'node:fs'
import { copyFile, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { lockDataDir, lockFile, lockNames, underRestore } from '../data-dir-lock.ts'
import { createDirectory, fsyncDirectory, ownerFor } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import { amountOf, checkAll, pathsIn } from './backup.ts'
import type { BackupJob, BackupResult } from './backup-job.ts'
import { copyBlobs } from './blob-files.ts'
import { DamageList } from './damage.ts'
import { digestOf, type Manifest, readManifest } from './manifest.ts'

/**
 * Restores a backup into an empty data folder of no running service. All is built in a folder within, and moved into
 * place once it is complete and flushed; while that folder exists, no service starts. Contents that were damaged when
 * the backup was made are reported, not refused.
 * @throws {DataDirError}
 */
export async function restore(job: BackupJob): Promise<BackupResult> {
  const { layout } = job
  const from = resolve(job.folder)
  const dataDir = resolve(job.dataDir)
  const manifest = await readManifest(from, layout.service)
  await createDirectory(dataDir)
  const unlock = await lockEmpty(dataDir)
  const into = underRestore(dataDir)
  try {
    await mkdir(into, { mode: 0o700 })
    const result = await build(job, { from, into, manifest }).catch(async (error) => {
      await rm(into, { recursive: true, force: true })
      throw error
    })
    await giveAway(dataDir, into)
    await fsyncDirectory(into)
    for (const name of await readdir(into)) await rename(join(into, name), join(dataDir, name))
    await fsyncDirectory(dataDir)
    await rmdir(into)
    await fsyncDirectory(dataDir)
    return result
  } finally {
    unlock()
  }
}

async function build(
  job: BackupJob,
  { from, into, manifest }: { from: string; into: string; manifest: Manifest },
): Promise<BackupResult> {
  const { layout, signal, progress, skipDamaged } = job
  const damages = new DamageList()
  for (const { name, sha256 } of manifest.files) {
    await copyPrivate(join(from, name), join(into, name), sha256)
  }
  const database = join(into, layout.database)
  const amount = amountOf(layout, database)
  progress.begin('copied', amount)
  const work = { signal, onContent: progress.content }
  const modes = layout.contentModes
  const each = layout.contents(database).each
  await copyBlobs(each, { from: [from], to: into, modes, onDamage: damages.add, ...work })
  const segments = manifest.segments.map(({ name }) => name)
  const rows = layout.rows
  await rows?.add({
    catalog: database,
    to: join(into, rows.database),
    have: [],
    from: { folder: from, databases: segments },
    ...work,
  })
  await checkAll({ ...job, segments: rows ? [rows.database] : [], damages }, into)
  const isNew = damages.digests.some((digest) => !manifest.damaged.includes(digest))
  if (isNew && !skipDamaged) damages.refuse(pathsIn(layout, database))
  damages.addKnown(manifest.damaged)
  return { ...amount, damages }
}

// A new volume contains `lost+found`.
async function lockEmpty(dataDir: string): Promise<() => void> {
  const names = await readdir(dataDir)
  const others = names.filter((name) => !lockNames.includes(name) && name !== 'lost+found')
  // A running service is the better reason, so it is reported first.
  if (names.includes(lockFile) || others.length === 0) {
    const unlock = lockDataDir(dataDir)
    if (others.length === 0) return unlock
    unlock()
  }
  throw new DataDirError(`${dataDir} is not empty: a restore overwrites nothing.`)
}

// Never a link: unlike contents, these files are written to later.
async function copyPrivate(from: string, to: string, sha256: string) {
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
