import type { DamageList } from './damage.ts'
import type { KeptFile } from './kept-file.ts'
import type { DatabaseStore } from './postgres/database-store.ts'
import type { Progress } from './progress.ts'
import type { RowContents } from './rows.ts'

export interface BlobSource {
  count: number
  bytes: number
  each: Iterable<KeptFile>
}

/** What a service keeps in its data folder. */
export interface BackupLayout {
  service: string
  /** The file name of its database. */
  database: string
  /** Folders of its own, in which no backup may lie. */
  folders: string[]
  /** The contents in files that a copy of the database, given by its path, refers to. */
  contents: (database: string) => BlobSource
  /** The modes that directories and files of contents have in a data folder. */
  contentModes?: { directory: number; file: number }
  /** Contents that are rows of a second database. */
  rows?: RowContents
  /** The paths of the files that have a content; by default contents are named by their digest alone. */
  pathsOf?: (database: string, sha256: string) => string[]
}

export interface BackupJob {
  layout: BackupLayout
  dataDir: string
  /** The users file, if it is not in the data directory. */
  usersFile?: string | undefined
  /** What is stored in PostgreSQL instead of the data directory. */
  store?: DatabaseStore | undefined
  /** Where the backup is made, or lies. */
  folder: string
  /** Whether every byte is read again at the end; else only sizes are compared. */
  verify: boolean
  /** Whether damaged contents are reported and left behind; else they fail the backup. */
  skipDamaged?: boolean
  signal: AbortSignal
  progress: Progress
}

export interface BackupResult {
  count: number
  bytes: number
  damages: DamageList
}
