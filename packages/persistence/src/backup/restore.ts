import { hash } from 'node:crypto'
import { existsSync, lchownSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { lockForRestore, lockNames, restoreMarker } from '../data-dir-lock.ts'
import { createDirectory, fsyncDirectory, giveToOwner, ownerFor, replaceFile, updateFile } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { Connection } from '../postgres/connections.ts'
import { lockSchema, restores } from '../postgres/migrate-postgres.ts'
import { name, sql } from '../sql/sql.ts'
import {
  type ArchivedService,
  type BackupBlobs,
  blobTable,
  type DatabaseStores,
  type DataPlaces,
  type FilledStores,
  writeTable,
} from './archived-service.ts'
import { type BackupResult, type DamageList, type Job, verifySnapshot } from './backup.ts'
import type { Snapshot } from './snapshot.ts'

/** With `verify` every byte of the backup is checked before anything is written. */
export interface RestoreJob extends Job {
  service: ArchivedService
  places: DataPlaces
  /** The environment, where it names a database; then nothing is restored into `places`. */
  database: NodeJS.ProcessEnv | undefined
  snapshot: Snapshot
}

/**
 * Restores a backup into an empty data directory or schema that no service uses. Call it again to continue an interrupted
 * restore; until it is complete, no service starts.
 * @throws {DataDirError}
 */
export async function restore(job: RestoreJob): Promise<BackupResult> {
  const { service, database, snapshot, skipDamaged } = job
  const damages = await verifySnapshot(job)
  if (!skipDamaged) await damages.refuse(snapshot)
  if (database) {
    await using main = await service.openDatabase(database, false)
    await restoreIntoDatabase(job, main, damages)
  } else {
    await restoreIntoFolder(job, damages)
  }
  return { snapshot, damages }
}

async function fill(job: RestoreJob, stores: FilledStores, damages: DamageList) {
  const { service, repository, snapshot, signal, progress, skipDamaged } = job
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
    if (name === blobTable || name.endsWith('.identity')) continue // Backups until November 2026 have the latter.
    for await (const rows of snapshot.rows(name)) {
      signal.throwIfAborted()
      await writeTable(service, stores, { table: name, rows }, blobs)
      progress.rows(rows.length)
    }
  }
  if (!skipDamaged) await damages.refuse(snapshot)
}

/** Identifies a backup: an interrupted restore is continued only with the same one. */
const identityOf = ({ manifest }: Snapshot) => hash('sha256', JSON.stringify(manifest))

async function restoreIntoFolder(job: RestoreJob, damages: DamageList) {
  const dataDir = resolve(job.places.dataDir)
  await createDirectory(dataDir)
  using stack = new DisposableStack()
  stack.defer(lockForRestore(dataDir))
  await beginInFolder(dataDir, identityOf(job.snapshot))
  {
    await using main = await job.service.openFolder(dataDir, false)
    await using accounts = job.service.accounts.openFile(dataDir, false)
    await fill(job, { main, accounts }, damages)
  }
  await restoreFiles(job, dataDir)
  await giveAway(dataDir)
  await fsyncDirectory(dataDir)
  await rm(restoreMarker(dataDir))
  await fsyncDirectory(dataDir)
}

// Durable before anything else is written: while the marker exists, no service starts.
async function beginInFolder(dataDir: string, backup: string) {
  const marker = restoreMarker(dataDir)
  const begun = await readFile(marker, 'utf8').catch(() => undefined)
  if (begun === backup) return
  if (begun !== undefined) {
    throw new DataDirError(
      `Another backup was being restored into ${dataDir}: finish that restore, or delete everything in it.`,
    )
  }
  const others = [...lockNames, basename(marker), lostAndFound]
  if ((await readdir(dataDir)).some((name) => !others.includes(name)))
    throw new DataDirError(`${dataDir} is not empty: a restore overwrites nothing.`)
  await replaceFile(marker, backup)
}

/** In a new ext4 volume. */
const lostAndFound = 'lost+found'

/** Restores the private files that are missing. The users file goes to where the service expects it. */
async function restoreFiles({ places: { usersFile }, snapshot }: RestoreJob, dataDir: string) {
  for (const [name, bytes] of Object.entries(await snapshot.readFiles())) {
    const file = join(dataDir, name)
    if (name === 'users.json' && usersFile) {
      const folder = dirname(usersFile)
      const isThere = existsSync(folder)
      await createDirectory(folder)
      if (!isThere) giveToOwner(folder, dataDir)
      await updateFile(usersFile, (text) => text ?? String(bytes))
    } else if (!existsSync(file)) await replaceFile(file, bytes)
  }
}

async function giveAway(dataDir: string) {
  const owner = ownerFor(dataDir)
  if (!owner) return
  for (const { name, parentPath } of await readdir(dataDir, {
    recursive: true,
    withFileTypes: true,
  }))
    if (name !== lostAndFound) lchownSync(join(parentPath, name), owner.uid, owner.gid)
}

async function restoreIntoDatabase(job: RestoreJob, main: DatabaseStores, damages: DamageList) {
  const { database } = main
  const { accounts } = job.service
  await database.transaction((transaction) => beginInDatabase(transaction, job))
  await fill(job, { main, accounts: database }, damages)
  const files = await job.snapshot.readFiles()
  await database.transaction(async (transaction) => {
    await refuseRows(transaction, ['users']) // Of a service that was starting when the restore began.
    await accounts.importUsers(transaction, files)
    for (const { name: table, identity } of job.service.tables) {
      if (identity) await continueNumbers(transaction, table, identity)
    }
    await transaction.run(sql`delete from ${restores}`)
  })
}

async function beginInDatabase(transaction: Connection, { service, snapshot }: RestoreJob) {
  const { schema } = transaction
  await lockSchema(transaction, schema)
  const backup = identityOf(snapshot)
  const begun = await transaction.get<{ backup: string }>(sql`select backup from ${restores}`)
  if (begun?.backup === backup) return
  if (begun) {
    throw new DataDirError(
      `Another backup was being restored into the schema ${schema}: finish that restore, or drop the schema.`,
    )
  }
  // A table of a single row has it from the beginning.
  const tables = [...service.tables, ...service.accounts.tables].filter(({ key }) => key[0] !== 'singleton')
  await refuseRows(transaction, [...tables.map((each) => each.name), 'users'])
  await transaction.run(sql`insert into ${restores} (backup) values (${backup})`)
}

// SQLite does so by itself.
const continueNumbers = (transaction: Connection, table: string, column: string) =>
  transaction.run(sql`select setval(pg_get_serial_sequence(${`${transaction.schema}.${table}`}, ${column}), max(id))
    from (select ${sql([column])} id from ${name(table)}) as numbers having max(id) is not null`)

// A service that uses a schema has users.
async function refuseRows(transaction: Connection, tables: string[]) {
  for (const table of tables) {
    if (!(await transaction.get(sql`select 1 from ${name(table)} limit 1`))) continue
    throw new DataDirError(
      `The table ${transaction.schema}.${table} is not empty: a restore overwrites nothing. Stop all replicas.`,
    )
  }
}
