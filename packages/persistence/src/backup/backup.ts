import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { announceBackup } from '../data-dir-lock.ts'
import { createDirectory, fsyncDirectory, writeNew } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { BackupJob, BackupLayout, BackupResult } from './backup-job.ts'
import { type BackupSource, folderSource } from './backup-source.ts'
import { verifyBlobs } from './blob-files.ts'
import { DamageList } from './damage.ts'
import { findEarlierBackup } from './earlier-backup.ts'
import { digestOf, type Manifest, manifestName } from './manifest.ts'
import { databaseSource } from './postgres/database-source.ts'
import { addSegment } from './segments.ts'

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
  const { store } = job
  const conclude = store ? () => undefined : announceBackup(job.dataDir)
  try {
    await createDirectory(dirname(folder))
    await mkdir(partial, { mode: 0o700 })
    try {
      const fillFrom = (source: BackupSource) => fill(job, { source, folder, partial, conclude })
      const result = store
        ? await store.database.snapshot((snapshot) =>
            fillFrom(databaseSource(job, store, snapshot)),
          )
        : await fillFrom(folderSource(job))
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

interface Filling {
  source: BackupSource
  folder: string
  partial: string
  /** Called when no content can go missing any more. */
  conclude: () => void
}

async function fill(
  job: BackupJob,
  { source, folder, partial, conclude }: Filling,
): Promise<BackupResult> {
  const { layout, signal, progress, skipDamaged } = job
  const damages = new DamageList()
  const copy = join(partial, layout.database)
  await source.copyDatabase(copy)
  signal.throwIfAborted()
  const small = await source.copySmallFiles(partial)
  const earlier = await findEarlierBackup(folder, layout.service)
  const amount = amountOf(layout, copy)
  progress.begin('copied', amount)
  await source.copyContents({
    contents: layout.contents(copy).each,
    to: partial,
    earlier: earlier?.folder,
    onDamage: damages.add,
  })
  const segments = await addSegment(job, { source, partial, copy, earlier })
  conclude()
  await checkAll({ ...job, segments: segments.map(({ name }) => name), damages }, partial)
  if (!skipDamaged) damages.refuse(pathsIn(layout, copy))
  const files = await Promise.all(
    [layout.database, ...small].map(async (name) => ({
      name,
      sha256: await digestOf(join(partial, name)),
    })),
  )
  const { service } = layout
  await writeManifest(partial, { service, files, segments, damaged: damages.digests })
  return { ...amount, damages }
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

function refuse(job: BackupJob, folder: string, partial: string) {
  if (!job.store) refuseDataDir(job, folder)
  if (folder.endsWith('.partial')) {
    throw new DataDirError('Names that end in .partial are those of unfinished backups.')
  }
  if (existsSync(folder)) throw new DataDirError(`There is something in ${folder} already.`)
  if (existsSync(partial)) {
    throw new DataDirError(`An earlier backup was interrupted: remove ${partial} first.`)
  }
}

function refuseDataDir({ layout, dataDir }: BackupJob, folder: string) {
  if (!existsSync(join(dataDir, layout.database))) {
    throw new DataDirError(`There is nothing of the ${layout.service} in ${dataDir}.`)
  }
  const [first = ''] = relative(resolve(dataDir), folder).split(sep)
  if (first === '' || layout.folders.includes(first)) {
    throw new DataDirError(`${folder} is the service's own: choose another folder.`)
  }
}

async function writeManifest(folder: string, made: Omit<Manifest, 'format' | 'made_at'>) {
  const manifest: Manifest = { format: 2, made_at: new Date().toISOString(), ...made }
  await writeNew(join(folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
}
