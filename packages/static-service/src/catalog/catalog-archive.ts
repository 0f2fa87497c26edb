import type { FileRow, VersionRow } from '../files/file-record.ts'

/** What backup, restore and check need of a catalog, besides `CatalogReads`. */
export interface CatalogArchive {
  /** Reads all rows as of one moment. Services may go on changing the catalog. */
  snapshot<T>(work: (snapshot: CatalogSnapshot) => Promise<T>): Promise<T>

  /**
   * For a restore: adds files as they are, with their times, and counts them, in one transaction. Leaves paths that exist, so
   * that an interrupted restore can be repeated.
   */
  importFiles(rows: FileRow[]): Promise<void>

  /** For a restore: adds version records with their numbers. Leaves those that exist. */
  importVersions(rows: VersionRow[]): Promise<void>

  /** What of the catalog does not agree with itself: rows, references and every count that is kept. */
  findMiscounts(): Promise<Miscount[]>

  /** The files with this content, by path. */
  pathsOf(digest: string): Promise<string[]>
}

/** All rows of one moment, in batches. */
export interface CatalogSnapshot {
  readonly totals: Totals

  /** By path. */
  files(): AsyncIterable<FileRow[]>

  /** By number. */
  versions(): AsyncIterable<VersionRow[]>

  /** Each content that files refer to, once, by digest. */
  contents(): AsyncIterable<{ digest: string; size: number }[]>
}

export interface Miscount {
  /** The path of a file, or what else is wrong. */
  path: string
  fault: string
}

export interface Totals {
  totalFiles: number
  totalSize: number
  /** Bytes of the distinct contents of files. */
  storedSize: number
  /** Bytes of the distinct contents that are kept only for the history. */
  pastSize: number
  versions: number
}
