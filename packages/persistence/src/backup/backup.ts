import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { announceBackup } from '../data-dir-lock.ts'
import { createDirectory, fsyncDirectory, writeNew } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { BackupJob, BackupLayout, BackupResult } from './backup-job.ts'
import { copyBlobs, verifyBlobs } from './blob-files.ts'
import { DamageList } from './damage.ts'
import { findEarlierBackup } from './earlier-backup.ts'
import { digestOf, type Manifest, manifestName } from './manifest.ts'
import { addSegment } from './segments.ts'
import { copyDatabase } from './snapshot.ts'

/** Small files in the data directory. What JWT_SECRET_FILE names elsewhere is not backed up. */
const smallFiles = ['users.json', 'jwt.secret', 'tokens.json']

/**
 * Makes a backup while the service may be running: the database as of one moment, and each content that it refers to.
 * Contents that the newest backup beside it has are shared with it by hard links. The folder has its name only once all
 * in it is complete and flushed; until then it ends in `.partial`.
 *
 * No content can go missing meanwhile. The service removes one only if it finds (1) that nothing refers to it and then
 * (2) that no backup is announced; between (1) and the removal nothing can come to refer to it (BlobLeases). Here the
 * announcement comes first and the snapshot after it. So if (2) found none, (1) was before the snapshot, which then does
 * not refer to what is removed; and if it found one, nothing is removed until the backup has ended.
 * @throws {DataDirError}
 */
export async function backUp(job: BackupJob): Promise<BackupResult> {
  const folder = resolve(job.folder)
  const partial = `${folder}.partial`
  refuse(job, folder, partial)
  const conclude = announceBackup(job.dataDir)
  try {
    await createDirectory(dirname(folder))
    await mkdir(partial, { mode: 0o700 })
    try {
      const result = await fill(job, { folder, partial, conclude })
      await fsyncDirectory(partial)
      await rename(partial, folder)
      await fsyncDirectory(dirname(folder))
      return result
    } catch (error) {
      await rm(partial, { recursive: true, force: true })
      throw error
    }
  } finally {
    conclude()
  }
}

async function fill(
  job: BackupJob,
  { folder, partial, conclude }: { folder: string; partial: string; conclude: () => void },
): Promise<BackupResult> {
  const { layout, dataDir, signal, progress, skipDamaged } = job
  const damages = new DamageList()
  const copy = join(partial, layout.database)
  await copyDatabase(join(dataDir, layout.database), copy, progress.database)
  signal.throwIfAborted()
  const small = await copySmallFiles(job, partial)
  const earlier = await findEarlierBackup(folder, layout.service)
  const amount = amountOf(layout, copy)
  progress.begin('copied', amount)
  const onContent = progress.content
  await copyBlobs(layout.contents(copy).each, {
    from: [dataDir, ...(earlier ? [earlier.folder] : [])],
    to: partial,
    signal,
    onContent,
    onDamage: damages.add,
  })
  const segments = await addSegment(job, { partial, copy, earlier, onContent })
  conclude()
  await checkAll({ ...job, segments: segments.map(({ name }) => name), damages }, partial)
  if (!skipDamaged) damages.refuse(pathsIn(layout, copy))
  const files = await Promise.all(
    [layout.database, ...small].map(async (name) => ({
      name,
      sha256: await digestOf(join(partial, name)),
    })),
  )
  await writeManifest(partial, {
    service: layout.service,
    files,
    segments,
    damaged: damages.digests,
  })
  return { ...amount, damages }
}

/** Copies the small files, readable only by their owner; returns their names. USERS_FILE may be elsewhere. */
async function copySmallFiles({ dataDir, usersFile }: BackupJob, to: string): Promise<string[]> {
  const sourceOf = (name: string) =>
    (name === 'users.json' ? usersFile : undefined) ?? join(dataDir, name)
  const names = smallFiles.filter((name) => existsSync(sourceOf(name)))
  for (const name of names) await writeNew(join(to, name), await readFile(sourceOf(name)))
  return names
}

/** The contents that a copy of the database refers to, in files and rows. */
export function amountOf({ contents, rows }: BackupLayout, database: string) {
  const files = contents(database)
  const inRows = rows?.count(database) ?? { count: 0, bytes: 0 }
  return { count: files.count + inRows.count, bytes: files.bytes + inRows.bytes }
}

/** The paths of the files that have a content, by a copy of the database. */
export const pathsIn =
  ({ pathsOf }: BackupLayout, database: string) =>
  (sha256: string): string[] =>
    pathsOf?.(database, sha256) ?? [sha256]

/** Checks every content that the database in this folder refers to, in files and in the databases that are named. */
export async function checkAll(
  job: BackupJob & { segments: string[]; damages: DamageList },
  folder: string,
): Promise<void> {
  const { layout, verify: hash, signal, progress, segments, damages } = job
  const database = join(folder, layout.database)
  progress.begin('checked', amountOf(layout, database))
  const work = { signal, onContent: progress.content, onDamage: damages.add, hash }
  await verifyBlobs(layout.contents(database).each, { folder, ...work })
  const from = { folder, databases: segments }
  await layout.rows?.verify({ catalog: database, from, ...work })
}

function refuse({ layout, dataDir }: BackupJob, folder: string, partial: string) {
  if (!existsSync(join(dataDir, layout.database))) {
    throw new DataDirError(`There is nothing of the ${layout.service} in ${dataDir}.`)
  }
  const [first = ''] = relative(resolve(dataDir), folder).split(sep)
  if (first === '' || layout.folders.includes(first)) {
    throw new DataDirError(`${folder} is the service's own: choose another folder.`)
  }
  if (folder.endsWith('.partial')) {
    throw new DataDirError('Names that end in .partial are those of unfinished backups.')
  }
  if (existsSync(folder)) throw new DataDirError(`There is something in ${folder} already.`)
  if (existsSync(partial)) {
    throw new DataDirError(`An earlier backup was interrupted: remove ${partial} first.`)
  }
}

async function writeManifest(folder: string, made: Omit<Manifest, 'format' | 'made_at'>) {
  const manifest: Manifest = { format: 2, made_at: new Date().toISOString(), ...made }
  await writeNew(join(folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
}
