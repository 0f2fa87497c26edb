/** A data directory, database or backup cannot be used as requested. The message is for the operator, in full sentences. */
export class DataDirError extends Error {}

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

/** The code of an error of the system, SQLite or PostgreSQL; empty without one. */
export const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

/** Maps errors of the disk, SQLite and its locks to the same classes as PostgreSQL's. Returns other errors unchanged. */
export function storageFailure(error: unknown): unknown {
  const code = codeOf(error)
  // SQLITE_IOERR_SHM: the shared-memory file cannot grow, so the disk is full.
  if (/^(?:SQLITE_FULL|SQLITE_IOERR_SHM|ENOSPC|EDQUOT)/.test(code)) return new DatabaseFullError(error)
  return unavailableCodes.test(code) ? new DatabaseUnavailableError(error) : error
}

// Node has no name for some errors, such as EUCLEAN of a damaged file system. ENOENT: the data directory was removed.
// ERR_WORKER_INIT_FAILED: no file descriptor or memory is left for another thread.
const unavailableCodes =
  /^(?:E(?:IO|ROFS|MFILE|NFILE|NOENT|NOTDIR|ACCES|PERM|NXIO|NODEV|NOMEM)$|ERR_WORKER_INIT_FAILED$|UNKNOWN$|Unknown system error|SQLITE_(?!CONSTRAINT(?!_TRIGGER)|ERROR$|MISMATCH|RANGE|TOOBIG|MISUSE))/

/** Why something cannot be read, by the code of its error. */
export const unreadable = (error: unknown): string => `cannot be read (${codeOf(error) || error})`

/**
 * Translates a database failure into an error with a sentence for the operator; returns others unchanged. `setting` is
 * the name of the URL setting.
 */
export function explainDatabaseFailure(error: unknown, setting = 'DATABASE_URL'): unknown {
  if (!(error instanceof Error && isTranslated(error))) return error
  const { cause } = error
  const reason = cause instanceof Error ? cause.message || String(cause) : String(cause)
  return new DataDirError(`Cannot use the database in ${setting}: ${reason}.`, { cause })
}

/** Maps errors of `pg` to these classes. Errors of a statement itself, such as a unique violation, are returned unchanged. */
export function translateError(error: unknown): unknown {
  if (!(error instanceof Error) || isTranslated(error)) return error
  const state = sqlStateOf(error)
  if (state === '53100') return new DatabaseFullError(error)
  const isUnavailable = state === undefined ? isConnectionFailure(error) : unavailableStates.test(state)
  return isUnavailable ? new DatabaseUnavailableError(error) : error
}

/**
 * Whether an error of COMMIT proves that nothing was committed. Not if PostgreSQL ended the connection, since that may
 * have happened just after the commit.
 */
export function isOutcomeCertain(error: unknown): boolean {
  const state = error instanceof Error ? sqlStateOf(error) : undefined
  return state !== undefined && (state === '53100' || !unavailableStates.test(state))
}

const isTranslated = (error: Error) =>
  [DatabaseUnavailableError, OutcomeUnknownError, DatabaseFullError].some((known) => error instanceof known)

// Connection exceptions, wrong password (changed while running), database missing, read-only standby, cancelled by a time
// limit, idle in transaction, out of resources, shut down, I/O error, corrupted.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const unavailableStates =
  /^(?:08...|28...|3D000|25006|25P03|25P04|53[0-9A-Z]{3}|55P03|57014|57P0.|57P05|58...|XX001|XX002)$/

const sqlStateOf = (error: Error): string | undefined =>
  'severity' in error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

// Socket errors have a system error code; pg's own errors have only a message.
const isConnectionFailure = (error: Error) =>
  /^(?:E[A-Z_]+|CERT_|ERR_TLS_|ERR_SSL_)/.test(codeOf(error)) || connectionMessages.test(error.message)

const connectionMessages =
  /^(?:Connection terminated|Connection ended|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end|The server does not support SSL|SASL)/
