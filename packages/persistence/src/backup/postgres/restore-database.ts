import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { DataDirError } from '../../errors.ts'
import { amountOf, checkAll, pathsIn } from '../backup.ts'
import type { BackupJob, BackupResult } from '../backup-job.ts'
import { DamageList } from '../damage.ts'
import { digestOf, type Manifest, readManifest } from '../manifest.ts'
import type { DatabaseStore } from './database-store.ts'
import { UnfinishedRestore } from './unfinished-restore.ts'

const accountTables = ['users', 'api_tokens']

/**
 * Restores a backup into the empty tables of a service in PostgreSQL, of which no replica runs. An interrupted restore is
 * resumed by calling this again; until it is complete, no service starts.
 * @throws {DataDirError}
 */
export async function restoreIntoDatabase(
  job: BackupJob,
  store: DatabaseStore,
): Promise<BackupResult> {
  const { layout, dataDir } = job
  const from = resolve(job.folder)
  const manifest = await readManifest(from, layout.service)
  const damages = await checkBackup(job, from, manifest)
  await mkdir(dataDir, { recursive: true })
  const temporary = await mkdtemp(join(dataDir, 'restore-'))
  try {
    const catalog = join(temporary, layout.database)
    await copyFile(join(from, layout.database), catalog)
    store.migrateFile(catalog) // The backup may be of an earlier version.
    const amount = amountOf(layout, catalog)
    await fill(job, store, { from, catalog, manifest, damages })
    return { ...amount, damages }
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

interface Backup {
  from: string
  /** A migrated copy of the backup's database. */
  catalog: string
  manifest: Manifest
  damages: DamageList
}

async function fill(job: BackupJob, store: DatabaseStore, backup: Backup) {
  const { layout, signal, progress } = job
  const { from, catalog, manifest, damages } = backup
  const { database } = store
  const restore = await UnfinishedRestore.begin(database, {
    backup: createHash('sha256').update(JSON.stringify(manifest)).digest('hex'),
    tables: [...store.tables, ...accountTables],
  })
  const onProgress = progress.database
  await store.importDatabase({ database, file: catalog, restore, signal, onProgress })
  progress.begin('stored', amountOf(layout, catalog))
  await store.contents?.import({
    ...{ from, catalog, signal },
    segments: manifest.segments.map(({ name }) => name),
    contents: layout.contents(catalog).each,
    onContent: progress.content,
    onDamage: damages.add,
  })
  const files = await readFiles(from, manifest)
  await database.transaction(async (transaction) => {
    await store.importFiles(transaction, files, from)
    await restore.end(transaction)
  })
}

async function readFiles(from: string, manifest: Manifest): Promise<Record<string, string>> {
  const names = manifest.files.map(({ name }) => name).filter((name) => name.endsWith('.json'))
  const texts = names.map(async (name) => [name, await readFile(join(from, name), 'utf8')] as const)
  return Object.fromEntries(await Promise.all(texts))
}

async function checkBackup(job: BackupJob, from: string, manifest: Manifest): Promise<DamageList> {
  for (const { name, sha256 } of manifest.files) {
    if ((await digestOf(join(from, name))) !== sha256) {
      throw new DataDirError(`${join(from, name)} has been altered.`)
    }
  }
  const damages = new DamageList()
  const segments = manifest.segments.map(({ name }) => name)
  await checkAll({ ...job, segments, damages }, from)
  const isNew = damages.digests.some((digest) => !manifest.damaged.includes(digest))
  const { layout } = job
  if (isNew && !job.skipDamaged) damages.refuse(pathsIn(layout, join(from, layout.database)))
  damages.addKnown(manifest.damaged)
  return damages
}
