/** A data directory or backup cannot be used as requested. The message is for the operator, in full sentences. */
export class DataDirError extends Error {}

/** The database cannot be used as configured. The message is for the operator, in full sentences. */
export class DatabaseRefusedError extends DataDirError {}

/** The database or the disk is unreachable, locked, failing or too slow. The failed operation had no effect. */
export class DatabaseUnavailableError extends Error {
  constructor(cause: unknown) {
    super('the database is not available', { cause })
  }
}

/** The connection was lost at COMMIT, and the outcome of the transaction could not be determined in time. */
export class OutcomeUnknownError extends Error {
  constructor(cause: unknown) {
    super('whether the transaction was committed is unknown', { cause })
  }
}

/** The disk is full. The failed operation had no effect. */
export class DatabaseFullError extends Error {
  constructor(cause: unknown) {
    super('the disk is full', { cause })
  }
}

/** Maps errors of the disk, SQLite and its locks to the same classes as PostgreSQL's. Returns other errors unchanged. */
export function storageFailure(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  // SQLITE_IOERR_SHM: the shared-memory file cannot grow, so the disk is full.
  if (/^(?:SQLITE_FULL|SQLITE_IOERR_SHM|ENOSPC|EDQUOT)/.test(code))
    return new DatabaseFullError(error)
  return unavailableCodes.test(code) ? new DatabaseUnavailableError(error) : error
}

// Node has no name for some errors, such as EUCLEAN of a damaged file system. ENOENT: the data directory was removed.
const unavailableCodes =
  /^(?:E(?:IO|ROFS|MFILE|NFILE|NOENT|NOTDIR|ACCES|PERM|NXIO|NODEV|NOMEM)$|UNKNOWN$|Unknown system error|SQLITE_(?!CONSTRAINT(?!_TRIGGER)|ERROR$|MISMATCH|RANGE|TOOBIG|MISUSE))/

/** Why something cannot be read, by the code of its error. */
export function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return `cannot be read (${code})`
}
