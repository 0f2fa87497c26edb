import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { announceBackup } from '../data-dir-lock.ts'
import { createDirectory, fsyncDirectory, writeNew } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import { copyBlobs, verifyBlobs } from './blob-files.ts'
import { digestOf, type Manifest, manifestName } from './manifest.ts'
import type { Progress } from './progress.ts'
import { copyDatabase } from './snapshot.ts'

/** A file that is never written to again, by its path below the data folder. */
export interface KeptFile {
  file: string
  size: number
  sha256: string
  /** It may not be on the disk yet, though it can be read. */
  isUnflushed?: boolean
}

export interface BlobSource {
  count: number
  bytes: number
  each: Iterable<KeptFile>
}

/** What a service keeps in its data folder. */
export interface BackupLayout {
  service: string
  /** The name of its database. */
  database: string
  /** Folders of its own, in which no backup may lie. */
  folders: string[]
  /** The contents that a copy of the database, given by its path, refers to. */
  contents: (database: string) => BlobSource
}

export interface BackupJob {
  layout: BackupLayout
  dataDir: string
  /** Where the backup is made, or lies. */
  folder: string
  /** Whether every byte is read again at the end, and not only each size compared. */
  verify: boolean
  signal: AbortSignal
  progress: Progress
}

/** Small files beside the database; what USERS_FILE or JWT_SECRET name elsewhere is not in the data folder. */
export const smallFiles = ['users.json', 'jwt.secret', 'tokens.json']

/**
 * Makes a backup while the service may be running: the database as of one moment, and each content that it refers to.
 * The folder has its name only once all in it is whole and flushed; until then it ends in `.partial`.
 *
 * No content can go missing meanwhile. The service removes one only when it finds (1) that nothing refers to it and
 * then (2) that no backup is announced; between (1) and the removal nothing can come to refer to it (Pins). Here the
 * announcement comes first and the snapshot after it. So when (2) found none, (1) was before the snapshot, which then
 * does not refer to what is removed; and when it found one, nothing is removed until the backup has ended.
 * @throws {DataDirError}
 */
export async function backUp(work: BackupJob): Promise<BlobSource> {
  const { layout, dataDir, signal, progress } = work
  const folder = resolve(work.folder)
  const partial = `${folder}.partial`
  refuse(work, folder, partial)
  const conclude = announceBackup(dataDir)
  try {
    await createDirectory(dirname(folder))
    await mkdir(partial, { mode: 0o700 })
    try {
      const copy = join(partial, layout.database)
      await copyDatabase(join(dataDir, layout.database), copy, progress.database)
      signal.throwIfAborted()
      const small = smallFiles.filter((name) => existsSync(join(dataDir, name)))
      for (const name of small) {
        await writeNew(join(partial, name), await readFile(join(dataDir, name)))
      }
      const contents = layout.contents(copy)
      progress.begin('copied', contents)
      const onKept = progress.kept
      await copyBlobs(contents.each, { from: dataDir, to: partial, signal, onKept })
      conclude()
      await checkAll(work, partial)
      await writeManifest(layout.service, partial, [layout.database, ...small])
      await fsyncDirectory(partial)
      await rename(partial, folder)
      await fsyncDirectory(dirname(folder))
      return contents
    } catch (error) {
      await rm(partial, { recursive: true, force: true })
      throw error
    }
  } finally {
    conclude()
  }
}

/** Looks at every content that the database in this folder refers to. @throws {DataDirError} naming what is damaged. */
export async function checkAll({ layout, verify, signal, progress }: BackupJob, folder: string) {
  const contents = layout.contents(join(folder, layout.database))
  progress.begin('checked', contents)
  const onKept = progress.kept
  await verifyBlobs(contents.each, { folder, hash: verify, signal, onKept })
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
    throw new DataDirError('A name that ends in .partial is of what is not finished.')
  }
  if (existsSync(folder)) throw new DataDirError(`There is something in ${folder} already.`)
  if (existsSync(partial)) {
    throw new DataDirError(`An earlier backup was broken off: remove ${partial} first.`)
  }
}

async function writeManifest(service: string, folder: string, names: string[]) {
  const files: Manifest['files'] = []
  for (const name of names) files.push({ name, sha256: await digestOf(join(folder, name)) })
  const manifest: Manifest = { format: 1, service, made_at: new Date().toISOString(), files }
  await writeNew(join(folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
}
