/** What a backup or a restore does with the contents that are rows of a database of their own. */
export interface RowJob {
  /** The catalog, as of the backup: it says which contents there are. */
  catalog: string
  signal: AbortSignal
  onContent: (content: { size: number }) => void
}

/**
 * Contents that a service keeps as rows of a database of their own. In a backup they lie in segments: databases that are
 * never written again. A later backup links the segments of an earlier one and adds one with the rows that those lack.
 */
export interface RowContents {
  /** The file name of the database in the data folder, `<name>.sqlite`; segments are `<name>-<number>.sqlite`. */
  database: string
  /** How many rows the catalog refers to, and their bytes. */
  count: (catalog: string) => { count: number; bytes: number }
  /**
   * Adds the rows that neither the database `to` nor any of the segments `have` holds to `to`, which is created if
   * needed. They are read from the databases and the content files of the folder `from`. Durable when it resolves, with
   * the number of rows. Rows that cannot be read are left out.
   */
  add: (job: RowJob & { to: string; have: string[]; from: RowSource }) => Promise<number>
  /** Compares the rows with their digests, or only with their sizes; what is damaged goes to `onDamage`. */
  verify: (
    job: RowJob & { from: RowSource; hash: boolean; onDamage: (damage: Damage) => void },
  ) => Promise<void>
}

export interface RowSource {
  folder: string
  /** Names of databases in the folder. */
  databases: string[]
}

/** A content that is missing or damaged. */
export interface Damage {
  sha256: string
  fault: string
}

/** Backups chain at most this many segments; the next backup copies all rows into one. */
export const maxSegments = 8
