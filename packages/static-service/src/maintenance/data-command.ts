import { archivedAccounts } from '@domains-and-files/auth'
import { webhookMigrations, webhookTables } from '@domains-and-files/events'
import {
  type ArchivedService,
  type ArchivedStores,
  allEnded,
  announceBackup,
  type BackupBlobs,
  type CommandLine,
  type DatabaseStores,
  DataDirError,
  type OpenBlob,
  piecesOf,
  type Row,
  runDataCommand,
  type SqlTransaction,
} from '@domains-and-files/persistence'
import { holdGarbage } from '../blobs/s3/garbage-sweep.ts'
import { catalogTables } from '../catalog/archive.ts'
import { hasCatalog } from '../catalog/sqlite/sqlite-catalog.ts'
import { sharedTables, sharingTables } from '../sharing/tables.ts'
import { openFolder, openShared, refusalOf, type Stores, throwExplained } from './stores.ts'

// Compressed forms are not backed up: the service makes them again on demand.

const service: ArchivedService = {
  name: 'static-service',
  tables: catalogTables,
  accounts: archivedAccounts({
    tables: [...sharedTables, ...webhookTables],
    migrations: { sharing: sharingTables, ...webhookMigrations },
  }),
  openFolder: openFolderStores,
  openDatabase: openSharedStores,
}

async function openFolderStores(dataDir: string, isBackup: boolean): Promise<ArchivedStores> {
  if (isBackup && !hasCatalog(dataDir)) throw new DataDirError(`There is nothing of the static-service in ${dataDir}.`)
  await using opened = new AsyncDisposableStack()
  // Before the snapshot: see FolderBlobStore.
  if (isBackup) opened.defer(announceBackup(dataDir))
  const stores = opened.use(await openFolder(dataDir, { isReadOnly: isBackup }))
  const openBlob = (digest: string) => stores.blobs.open(digest)
  return Object.assign(opened.move(), { database: stores.catalog.database, write: writerTo(stores), openBlob })
}

async function openSharedStores(env: NodeJS.ProcessEnv, isBackup: boolean): Promise<DatabaseStores> {
  await using opened = new AsyncDisposableStack()
  const stores = opened.use(await openShared(env))
  const { postgres: database, blobs } = stores
  if (isBackup) opened.use(await holdGarbage(database))
  let looked: Promise<unknown> = Promise.resolve() // A connection has one statement at a time.
  const openBlob = (digest: string, snapshot: SqlTransaction = database) => {
    const found = looked.then(() => blobs.openAt(snapshot, digest))
    looked = found.catch(() => undefined)
    return found.then(explained, throwExplained)
  }
  return Object.assign(opened.move(), { database, write: writerTo(stores), openBlob })
}

/** The blob, whose reads turn failures of the whole store into errors that explain themselves. */
function explained(blob: OpenBlob | undefined): OpenBlob | undefined {
  const read = blob?.read.bind(blob)
  const explain = (error: unknown) => throwExplained(refusalOf(error) ?? error)
  return (
    blob && read && Object.assign(blob, { read: (...range: Parameters<typeof read>) => read(...range).catch(explain) })
  )
}

const writerTo =
  (stores: Stores): ArchivedStores['write'] =>
  async (table, rows, blobs) => {
    if (table !== 'files' && table !== 'past_files') return stores.catalog.writes.importRows({ table, rows })
    const files = rows as FileOfBlob[] // As the catalog's snapshot has them.
    for (const group of groupsOf(files)) await writeFiles(stores, { table, files: group }, blobs).catch(throwExplained)
  }

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
    for await (const piece of piecesOf(source)) await draft.write(piece)
    await draft.seal()
    const kept = await draft.keep()
    if (kept.digest !== digest) backup.onDamage({ digest, fault: 'has been altered' })
    else backup.onBlob({ size })
    return kept.digest === digest
  }
}

// Large files are groups of their own: after an interruption, stored groups are not sent again.
function groupsOf(files: FileOfBlob[]): FileOfBlob[][] {
  const groups: FileOfBlob[][] = []
  let bytes = 0
  for (const file of files) {
    const group = groups.at(-1)
    bytes += file.size
    if (group && group.length < maxGroupFiles && bytes <= maxGroupBytes) group.push(file)
    else {
      groups.push([file])
      bytes = file.size
    }
  }
  return groups
}

const maxGroupFiles = 64
const maxGroupBytes = 16_777_216

/** Runs the command with these arguments, and returns its exit status. */
export const manageData = (args: string[], line: CommandLine): Promise<number> => runDataCommand(service, args, line)

if (import.meta.main) process.exitCode = await manageData(process.argv.slice(2), process)
