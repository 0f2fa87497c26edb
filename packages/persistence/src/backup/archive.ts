import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Postgres } from '../postgres/postgres.ts'
import type { Transaction } from '../postgres/transaction.ts'

/** The columns of a row by name: text, integers, null and Buffers. */
export type Row = Record<string, unknown>

/** A table of a service in a consistent snapshot. */
export interface Table {
  name: string
  /** In batches. */
  rows: () => AsyncIterable<Row[]>
}

/** A blob opened for reading. */
export interface ReadableBlob extends AsyncDisposable {
  readonly size: number
  /** Reads `length` bytes from `start`, or fewer at the end. */
  read(start: number, length: number): Promise<Buffer>
}

export interface BlobRef {
  /** SHA-256 in hex. */
  digest: string
  size: number
}

/** Name of the table that lists the blobs of a backup: one `BlobRef` per row, sorted by digest. Not restored. */
export const blobTable = 'blobs'

/** File in the folder of a snapshot with the time of its last successful full verification. */
export const verifiedName = 'verified'

/** A blob that is missing or damaged. */
export interface Damage {
  digest: string
  fault: string
}

/** Small private files by their name, such as `users.json`. */
export type PrivateFiles = Record<string, Buffer | string>

/** The users file and the JWT secret of a data directory. A file named by JWT_SECRET_FILE is not backed up. */
export async function readPrivateFiles({ dataDir, usersFile }: DataPlaces): Promise<PrivateFiles> {
  const places = { 'users.json': usersFile, 'jwt.secret': undefined }
  const files: PrivateFiles = {}
  for (const [name, elsewhere] of Object.entries(places)) {
    const bytes = await readFile(elsewhere ?? join(dataDir, name)).catch(ignoreMissing)
    if (bytes) files[name] = bytes
  }
  return files
}

export interface DataPlaces {
  dataDir: string
  /** The users file, if outside the data directory. A restore does not overwrite an existing one. */
  usersFile?: string | undefined
}

export interface BackupWork {
  /** Copies all rows of one snapshot. */
  rows: (tables: Table[], files: PrivateFiles) => Promise<void>
  /** Copies the blobs that this snapshot refers to. */
  blobs: (open: (digest: string) => Promise<ReadableBlob | undefined>) => Promise<void>
}

/** The stores of a service, opened for a backup while the service may be running. */
export interface BackupSource extends AsyncDisposable {
  /** Calls `rows`, then `blobs`. Prevents deletion of the snapshot's blobs meanwhile. */
  read(work: BackupWork): Promise<void>
}

/** The blobs of a backup, for its restore. */
export interface BackupBlobs {
  /** A blob to read; undefined, and reported as damaged, if the repository lacks it. */
  open: (ref: BlobRef) => Promise<ReadableBlob | undefined>
  onDamage: (damage: Damage) => void
  onBlob: (blob: { size: number }) => void
}

/** Stores that a restore fills. */
export interface RestoreTarget extends AsyncDisposable {
  /** Adds rows. Idempotent: existing rows stay unchanged. */
  write(table: string, rows: Row[], blobs: BackupBlobs): Promise<void>
}

/** A schema of PostgreSQL to restore into. */
export interface DatabaseTarget extends RestoreTarget {
  database: Postgres
  /** Tables that must be empty before a restore. */
  tables: string[]
  /** Stores users and API tokens. */
  writeFiles(transaction: Transaction, files: PrivateFiles): Promise<void>
}

/** A service as the backup commands see it. */
export interface ArchivedService extends DataPlaces {
  name: string
  /** @throws {DataDirError} if there is nothing to back up. */
  openSource: () => Promise<BackupSource>
  /** Opens empty stores of the embedded form (SQLite) in a folder. */
  openFolder: (folder: string) => Promise<RestoreTarget>
  /** With `DATABASE_URL`; then nothing is restored into `dataDir`. */
  openDatabase?: (() => Promise<DatabaseTarget>) | undefined
}

/** The results, after all tasks have settled. @throws the first error. */
export async function allEnded<T>(tasks: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(tasks)
  return Promise.all(tasks)
}

export function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
