import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Postgres } from '../postgres/postgres.ts'
import type { Transaction } from '../postgres/transaction.ts'

/** The columns of a row by name: text, integers, null and Buffers. */
export type Row = Record<string, unknown>

/** A table of a service, as of one moment. */
export interface Table {
  name: string
  /** In batches. */
  rows: () => AsyncIterable<Row[]>
}

/** A blob opened for reading. */
export interface ReadableBlob extends AsyncDisposable {
  readonly size: number
  /** These bytes, or those up to the end. */
  read(start: number, length: number): Promise<Buffer>
}

export interface BlobRef {
  /** SHA-256 in hex. */
  digest: string
  size: number
}

/** The table of a backup that lists its blobs: a `BlobRef` in each row, by digest. No service restores it. */
export const blobTable = 'blobs'

/** In the folder of a snapshot, the time when every byte of it was last found right. */
export const verifiedName = 'verified'

/** A blob that is missing or damaged. */
export interface Damage {
  digest: string
  fault: string
}

/** Small private files by their name, such as `users.json`. */
export type PrivateFiles = Record<string, Buffer | string>

/** The users file and the secret of a data directory. What JWT_SECRET_FILE names elsewhere is not backed up. */
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
  /** The users file, if it is not in the data directory. A restore leaves one that is there. */
  usersFile?: string | undefined
}

export interface BackupWork {
  /** Copies all rows as of one moment. */
  rows: (tables: Table[], files: PrivateFiles) => Promise<void>
  /** Copies the blobs of that moment. */
  blobs: (open: (digest: string) => Promise<ReadableBlob | undefined>) => Promise<void>
}

/** What a service stores, opened for a backup beside the running service. */
export interface BackupSource extends AsyncDisposable {
  /** Calls `rows`, then `blobs`, and lets no blob of that moment be deleted meanwhile. */
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
  /** Adds rows. May be repeated: rows that are there are left as they are. */
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

/** A service, to the commands. */
export interface ArchivedService extends DataPlaces {
  name: string
  /** @throws {DataDirError} where there is nothing to back up. */
  openSource: () => Promise<BackupSource>
  /** Opens empty stores in a folder, for the embedded form. */
  openFolder: (folder: string) => Promise<RestoreTarget>
  /** With `DATABASE_URL`; then nothing is restored into `dataDir`. */
  openDatabase?: (() => Promise<DatabaseTarget>) | undefined
}

/** The results, once all have ended. @throws the first error. */
export async function allEnded<T>(tasks: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(tasks)
  return Promise.all(tasks)
}

export function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
