import { authTables, exportUsers, importUsers, openAuthFile, readAuthFolder } from '@domains-and-files/auth'
import { webhookMigrations, webhookTables } from '@domains-and-files/events'
import {
  allEnded,
  announceBackup,
  type BackupBlobs,
  type BackupSource,
  type CommandLine,
  type DatabaseTarget,
  DataDirError,
  type DataPlaces,
  type ReadableBlob,
  type RestoreTarget,
  type Row,
  readTables,
  refuseUnfinished,
  runDataCommand,
  type Sql,
  writeRows,
} from '@domains-and-files/persistence'
import { holdGarbage } from '../blobs/s3/garbage-sweep.ts'
import type { OpenBlob } from '../blobs/stored-blob.ts'
import { readCatalog, restoredTables } from '../catalog/archive.ts'
import { hasCatalog } from '../catalog/sqlite/open-sqlite.ts'
import { sharedTables, sharingTables } from '../sharing/tables.ts'
import { openFolder, openShared, refusalOf, type SharedStores, type Stores, throwExplained } from './stores.ts'

// Compressed forms are not backed up: the service makes them again on demand.

/** Beside the API tokens. */
const otherTables = [...authTables, ...sharedTables, ...webhookTables]
const catalogTables = [...restoredTables, 'catalog']

/** A data directory. While it is open, the service deletes no blob. @throws {DataDirError} */
async function openFolderSource(places: DataPlaces): Promise<BackupSource> {
  const { dataDir } = places
  if (!hasCatalog(dataDir)) throw new DataDirError(`There is nothing of the static-service in ${dataDir}.`)
  await using opened = new AsyncDisposableStack()
  // Before the snapshot: see FolderBlobStore.
  opened.defer(announceBackup(dataDir))
  const { catalog, blobs } = opened.use(await openFolder(dataDir, { isReadOnly: true }))
  const stack = opened.move()
  return {
    async read(work) {
      await catalog.database.snapshot((transaction) =>
        readAuthFolder(places, otherTables, (others, files) =>
          work.rows([...readCatalog(transaction), ...others], files),
        ),
      )
      await work.blobs((digest) => blobs.open(digest))
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** PostgreSQL and S3. While it is open, no replica deletes an object. */
async function openSharedSource(env: NodeJS.ProcessEnv): Promise<BackupSource> {
  await using opened = new AsyncDisposableStack()
  const { postgres, blobs } = opened.use(await openShared(env))
  await refuseUnfinished(postgres)
  opened.use(await holdGarbage(postgres))
  const stack = opened.move()
  return {
    // Small blobs are rows, so all are read in the snapshot.
    read: (work) =>
      postgres.snapshot(async (transaction) => {
        const all = [...readCatalog(transaction), ...readTables(transaction, otherTables)]
        await work.rows(all, await exportUsers(transaction))
        let looked: Promise<unknown> = Promise.resolve() // A connection has one statement at a time.
        await work.blobs((digest) => {
          const found = looked.then(() => blobs.openAt(transaction, digest))
          looked = found.catch(() => undefined)
          return found.then(explained, throwExplained)
        })
      }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Reads a blob sequentially; turns failures of the whole store into errors that explain themselves. */
function explained(blob: OpenBlob | undefined): ReadableBlob | undefined {
  blob?.expect?.(0, blob.size)
  return (
    blob && {
      size: blob.size,
      read: (start, length) => blob.read(start, length).catch((error) => throwExplained(refusalOf(error) ?? error)),
      [Symbol.asyncDispose]: () => blob[Symbol.asyncDispose](),
    }
  )
}

/** Stores in a folder that is being built. */
async function openFolderTarget(folder: string): Promise<RestoreTarget> {
  await using opened = new AsyncDisposableStack()
  const stores = opened.use(await openFolder(folder))
  const tokens = openAuthFile(folder, { sharing: sharingTables, ...webhookMigrations })
  opened.defer(() => tokens.close())
  return targetOf(stores, tokens, opened.move())
}

async function openSharedTarget(env: NodeJS.ProcessEnv): Promise<DatabaseTarget> {
  await using opened = new AsyncDisposableStack()
  const stores: SharedStores = opened.use(await openShared(env))
  const { postgres: database } = stores
  return {
    ...targetOf(stores, database, opened.move()),
    database,
    tables: [...restoredTables, 'contents', 'users', ...otherTables.map(({ name }) => name)],
    writeFiles: importUsers,
  }
}

const targetOf = (stores: Stores, tokens: Sql, opened: AsyncDisposableStack): RestoreTarget => ({
  async write(table, rows, blobs) {
    if (table === 'ended_sessions') return // In backups of earlier versions: sessions that ended then.
    if (otherTables.some(({ name }) => name === table)) return writeRows(tokens, table, rows)
    if (!catalogTables.includes(table)) throw new DataDirError(`The backup has a table ${table}, which is not known.`)
    if (table !== 'files' && table !== 'past_files') return stores.catalog.writes.importRows({ table, rows })
    const files = rows as FileOfBlob[] // As the catalog's snapshot has them.
    for (const group of groupsOf(files)) await writeFiles(stores, { table, files: group }, blobs).catch(throwExplained)
  },
  [Symbol.asyncDispose]: () => opened.disposeAsync(),
})

/** A file, or a past one. */
type FileOfBlob = Row & { digest: string; size: number }

// As uploads do: bytes first, then the rows that refer to them. Skips the files of damaged blobs.
async function writeFiles(
  { catalog, blobs }: Stores,
  { table, files }: { table: string; files: FileOfBlob[] },
  backup: BackupBlobs,
) {
  await using staged = new AsyncDisposableStack()
  const sizes = new Map(files.map(({ digest, size }) => [digest, size]))
  const store = async ([digest, size]: [string, number]) =>
    (await isStored(digest, size)) || (await stage(digest, size)) ? [] : [digest]
  const damaged = new Set((await allEnded([...sizes].map(store))).flat())
  const whole = files.filter(({ digest }) => !damaged.has(digest))
  if (whole.length > 0) await catalog.writes.importRows({ table, rows: whole })

  async function isStored(digest: string, size: number) {
    return (await blobs.formSize(digest, 'identity')) === size
  }

  async function stage(digest: string, size: number): Promise<boolean> {
    await using source = await backup.open({ digest, size })
    if (!source) return false
    const draft = staged.use(blobs.draft())
    for (let at = 0; at < source.size; at += chunkBytes) await draft.write(await source.read(at, chunkBytes))
    await draft.seal()
    const kept = await draft.keep()
    if (kept.digest !== digest) backup.onDamage({ digest, fault: 'has been altered' })
    else backup.onBlob({ size })
    return kept.digest === digest
  }
}

// Large files are groups of their own: after an interruption, stored groups are not sent again.
function* groupsOf(files: FileOfBlob[]): Generator<FileOfBlob[]> {
  let group: FileOfBlob[] = []
  let bytes = 0
  for (const file of files) {
    if (group.length === maxGroupFiles || (group.length > 0 && bytes + file.size > maxGroupBytes)) {
      yield group
      group = []
      bytes = 0
    }
    group.push(file)
    bytes += file.size
  }
  if (group.length > 0) yield group
}

const maxGroupFiles = 64
const maxGroupBytes = 16_777_216
const chunkBytes = 1_048_576

/** Runs the command with these arguments, and returns its exit status. */
export const manageData = (args: string[], line: CommandLine): Promise<number> =>
  runDataCommand(
    {
      name: 'static-service',
      folders: ['blobs', 'tmp', 'uploads'],
      openFolderSource,
      openFolder: openFolderTarget,
      openDatabaseSource: openSharedSource,
      openDatabase: openSharedTarget,
    },
    args,
    line,
  )

if (import.meta.main) process.exitCode = await manageData(process.argv.slice(2), process)
