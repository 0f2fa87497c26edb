import { createHash } from 'node:crypto'
import { chownSync, existsSync, lchownSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { lockForRestore, lockNames, underRestore } from '../data-dir-lock.ts'
import {
  createDirectory,
  fsyncDirectory,
  giveToOwner,
  ownerFor,
  writeNew,
} from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import { lockSchema } from '../postgres/migrate-postgres.ts'
import { isInUse, restoreTable } from '../postgres/own-tables.ts'
import type { Transaction } from '../postgres/transaction.ts'
import { updateFile } from '../shared-file.ts'
import {
  type ArchivedService,
  type BackupBlobs,
  blobTable,
  type DatabaseTarget,
  type RestoreTarget,
} from './archive.ts'
import type { BackupResult } from './backup.ts'
import type { Snapshot } from './snapshot.ts'
import { type DamageList, type Job, verifySnapshot } from './verify.ts'

/** With `verify` every byte of the backup is checked before anything is written. */
export interface RestoreJob extends Job {
  service: ArchivedService
  snapshot: Snapshot
}

/**
 * Restores a backup into an empty data directory or schema that no service uses. Call it again to continue an interrupted
 * restore; until it is complete, no service starts.
 * @throws {DataDirError}
 */
export async function restore(job: RestoreJob): Promise<BackupResult> {
  const { service, snapshot, skipDamaged } = job
  const damages = await verifySnapshot(job)
  if (!skipDamaged) await damages.refuse(snapshot)
  if (service.openDatabase) {
    await using target = await service.openDatabase()
    await restoreIntoDatabase(job, target, damages)
  } else {
    await restoreIntoFolder(job, damages)
  }
  return { snapshot, damages }
}

async function fill(job: RestoreJob, target: RestoreTarget, damages: DamageList) {
  const { repository, snapshot, signal, progress, skipDamaged } = job
  const blobs: BackupBlobs = {
    open: async (ref) => {
      const blob = damages.has(ref.digest) ? undefined : await repository.open(ref)
      if (!blob) damages.add({ digest: ref.digest, fault: 'is missing' })
      return blob
    },
    onDamage: damages.add,
    onBlob: progress.blob,
  }
  progress.begin('stored', snapshot.manifest.blobs)
  for (const { name } of snapshot.manifest.tables) {
    if (name === blobTable) continue
    for await (const rows of snapshot.rows(name)) {
      signal.throwIfAborted()
      await target.write(name, rows, blobs)
      progress.rows(rows.length)
    }
  }
  if (!skipDamaged) await damages.refuse(snapshot)
}

/** Identifies a backup: an interrupted restore is continued only with the same one. */
const identityOf = ({ manifest }: Snapshot) =>
  createHash('sha256').update(JSON.stringify(manifest)).digest('hex')

// Builds the stores in a subfolder, and moves them into place once durable. While the subfolder exists, no service starts.
async function restoreIntoFolder(job: RestoreJob, damages: DamageList) {
  const dataDir = resolve(job.service.dataDir)
  const into = underRestore(dataDir)
  const backup = identityOf(job.snapshot)
  await createDirectory(dataDir)
  using stack = new DisposableStack()
  stack.defer(lockForRestore(dataDir))
  if (!(await isBuilt(dataDir, backup))) {
    {
      await using target = await job.service.openFolder(into)
      await fill(job, target, damages)
    }
    await restoreFiles(job, { dataDir, into })
    await giveAway(dataDir, into)
    await writeMarker(into, { backup, isBuilt: true })
  }
  for (const name of await readdir(into))
    if (name !== markerName) await rename(join(into, name), join(dataDir, name))
  await fsyncDirectory(dataDir)
  await rm(into, { recursive: true })
  await fsyncDirectory(dataDir)
}

interface Marker {
  backup: string
  /** All data is durable in the subfolder, and is being moved into place. */
  isBuilt: boolean
}

const markerName = 'restore.json'

/** Whether the restore only needs moving into place. If not, the subfolder exists: empty, or as an interruption left it. */
async function isBuilt(dataDir: string, backup: string): Promise<boolean> {
  const into = underRestore(dataDir)
  const begun = await readMarker(into)
  if (begun?.isBuilt) {
    if (begun.backup === backup) return true
    throw new DataDirError(
      `Another backup was being restored into ${dataDir}: finish that restore, or delete everything in it.`,
    )
  }
  // A new ext4 volume contains `lost+found`.
  const own = [...lockNames, basename(into), 'lost+found']
  if ((await readdir(dataDir)).some((name) => !own.includes(name)))
    throw new DataDirError(`${dataDir} is not empty: a restore overwrites nothing.`)
  if (begun?.backup === backup) return false
  await rm(into, { recursive: true, force: true })
  await mkdir(into, { mode: 0o700 })
  await writeMarker(into, { backup, isBuilt: false })
  return false
}

const readMarker = (into: string): Promise<Marker | undefined> =>
  readFile(join(into, markerName), 'utf8')
    .then(JSON.parse)
    .catch(() => undefined)

async function writeMarker(into: string, marker: Marker) {
  const file = join(into, markerName)
  await rm(`${file}.new`, { force: true })
  await writeNew(`${file}.new`, JSON.stringify(marker))
  await rename(`${file}.new`, file)
  await fsyncDirectory(into)
}

/** Restores the private files. The users file goes to where the service expects it, unless one exists there. */
async function restoreFiles(
  { service: { usersFile }, snapshot }: RestoreJob,
  { dataDir, into }: { dataDir: string; into: string },
) {
  for (const [name, bytes] of Object.entries(await snapshot.readFiles())) {
    if (name === 'users.json' && usersFile) {
      const folder = dirname(usersFile)
      const isThere = existsSync(folder)
      await createDirectory(folder)
      if (!isThere) giveToOwner(folder, dataDir)
      await updateFile(usersFile, (text) => text ?? String(bytes))
    } else {
      await rm(join(into, name), { force: true })
      await writeNew(join(into, name), bytes)
    }
  }
}

async function giveAway(dataDir: string, made: string) {
  const owner = ownerFor(dataDir)
  if (!owner) return
  chownSync(made, owner.uid, owner.gid)
  for (const entry of await readdir(made, { recursive: true, withFileTypes: true })) {
    lchownSync(join(entry.parentPath, entry.name), owner.uid, owner.gid)
  }
}

async function restoreIntoDatabase(job: RestoreJob, target: DatabaseTarget, damages: DamageList) {
  const { database } = target
  await database.transaction((transaction) => beginInDatabase(transaction, target, job.snapshot))
  await fill(job, target, damages)
  const files = await job.snapshot.readFiles()
  await database.transaction(async (transaction) => {
    await target.writeFiles(transaction, files)
    await transaction.query(`delete from ${restoreTable(database.schema)}`)
  })
}

async function beginInDatabase(
  transaction: Transaction,
  { database: { schema }, tables }: DatabaseTarget,
  snapshot: Snapshot,
) {
  await lockSchema(transaction, schema)
  if (await isInUse(transaction)) {
    throw new DataDirError(
      `A service is using the schema ${schema}: stop all replicas. One that was killed counts for 10 seconds.`,
    )
  }
  const backup = identityOf(snapshot)
  const [begun] = await transaction.query<{ backup: string }>(
    `select backup from ${restoreTable(schema)}`,
  )
  if (begun?.backup === backup) return
  if (begun) {
    throw new DataDirError(
      `Another backup was being restored into the schema ${schema}: finish that restore, or drop the schema.`,
    )
  }
  for (const table of tables) {
    const found = await transaction.query(`select 1 from ${schema}.${table} limit 1`)
    if (found.length === 0) continue
    throw new DataDirError(
      `The table ${schema}.${table} is not empty: a restore overwrites nothing.`,
    )
  }
  await transaction.query(`insert into ${restoreTable(schema)} (backup) values ($1)`, [backup])
}
