import type { SqlTransaction } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../blobs/s3/content-commit.ts'
import type { LoadedFiles } from './loaded-files.ts'

/** How long the past is kept. */
export interface HistoryRules {
  /** Days that replaced and deleted files are kept; 0: only what kept versions show. */
  keepDays: number
  /** Number of newest versions that keep their files. */
  keepVersions: number
  /** Days that entries of changes are kept, at least `keepDays`; 0: for ever. */
  entryDays: number
}

/** Maximum files per transaction, for which other changes wait. */
export interface SliceLimits {
  /** Up to this many files are changed in one transaction; more in slices. */
  wholeFiles: number
  sliceFiles: number
}

export interface CatalogOptions {
  /** Maximum bytes of the distinct blobs of current and past files; undefined: unlimited. */
  quotaBytes?: number | undefined
  limits?: SliceLimits | undefined
  history?: HistoryRules | undefined
}

/** A transaction, and what the changes in it share. */
export interface Group {
  transaction: SqlTransaction
  nowMs: number
  rules: HistoryRules & SliceLimits
  /** Ended files to keep: all, those that the newest version shows, or none. `nothing`: marks no versions either. */
  keeps: 'all' | 'versions' | 'none' | 'nothing'
  /** Blobs whose rows change in the transactions of the catalog. */
  contents: ContentTransaction | undefined
  /** The rows that it changes. */
  table: LoadedFiles
}

/** `bytes`: of the files; `bytesFreed`: of their contents that no other file has. */
export interface Removed {
  files: number
  bytes: number
  bytesFreed: number
}
