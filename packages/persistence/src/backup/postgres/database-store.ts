import type { Postgres } from '../../postgres/postgres.ts'
import type { Transaction } from '../../postgres/transaction.ts'
import type { KeptFile } from '../kept-file.ts'
import type { Damage, RowSource } from '../rows.ts'
import type { UnfinishedRestore } from './unfinished-restore.ts'

interface CopyJob {
  /** A SQLite database. */
  file: string
  signal: AbortSignal
  /** Receives how much is done, from 0 to 1. */
  onProgress: (done: number) => void
}

export type ExportJob = CopyJob

export interface ImportJob extends CopyJob {
  database: Postgres
  restore: UnfinishedRestore
}

/** What a service stores in PostgreSQL, for its backup: the same backup as that of a data directory. */
export interface DatabaseStore {
  database: Postgres
  /** Tables that must be empty before a restore. */
  tables: string[]
  /** Creates the service's SQLite database, or migrates an older one. */
  migrateFile: (file: string) => void
  /** Copies what is in PostgreSQL into a SQLite database that `migrateFile` has made. For equal tables: `exportTables`. */
  exportDatabase: (snapshot: Transaction, job: ExportJob) => Promise<void>
  /** Copies a SQLite database into PostgreSQL, in steps that a resumed restore skips. For equal tables: `importTables`. */
  importDatabase: (job: ImportJob) => Promise<void>
  /** The users and API tokens as the small files of a data directory, by name. */
  exportFiles: (snapshot: Transaction) => Promise<Record<string, string | Buffer>>
  /** Stores users and API tokens: of JSON files, and of other files in the folder `from`. */
  importFiles: (
    transaction: Transaction,
    files: Record<string, string>,
    from: string,
  ) => Promise<void>
  contents?: ContentStore
  /** Called at the end; by default it closes the database. */
  close?: () => Promise<void>
}

interface ContentJob {
  signal: AbortSignal
  onContent: (content: { size: number }) => void
  onDamage: (damage: Damage) => void
  contents: Iterable<KeptFile>
}

/** Contents outside of the data directory. */
export interface ContentStore {
  /** Writes content files below `to`, as of the snapshot; those that the folder `earlier` has are linked from there. */
  export: (
    job: ContentJob & { snapshot: Transaction; to: string; earlier: string | undefined },
  ) => Promise<void>
  /** Writes the contents that are rows into a database in `to`, which is removed after the backup. */
  exportRows: (job: { snapshot: Transaction; to: string; catalog: string }) => Promise<RowSource>
  /** Stores the contents of a backup. May be repeated: what is stored already is left out. */
  import: (job: ContentJob & { from: string; catalog: string; segments: string[] }) => Promise<void>
}
