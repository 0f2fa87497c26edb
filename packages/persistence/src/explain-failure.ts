import { DataDirError } from './errors.ts'
import { explainDatabaseFailure } from './postgres/postgres-errors.ts'

/**
 * Translates errors of the system, SQLite and PostgreSQL that an operator can fix into a `DataDirError`. Returns others
 * unchanged.
 */
export function explainFailure(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'errcode' in error ? `SQLITE_${error.errcode}` : 'code' in error ? error.code : ''
  const words = reasons[String(code)]
  return words === undefined
    ? explainDatabaseFailure(error)
    : new DataDirError(`${words} (${error.message}).`)
}

const full = 'The disk is full. The partial copy was removed: free space and try again'
const notAllowed = 'Permission denied: run this as the user that runs the service'

const reasons: Record<string, string> = {
  ENOSPC: full,
  EDQUOT: 'The disk quota is exceeded. The partial copy was removed: free space and try again',
  // https://www.sqlite.org/rescode.html: SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_READONLY.
  SQLITE_13: full,
  SQLITE_14: 'Cannot open the database: run this as the user that runs the service',
  SQLITE_11: 'The database is damaged, or the disk fails', // SQLite takes EIO of a read for damage.
  SQLITE_26: 'The database is damaged',
  SQLITE_8: notAllowed,
  EACCES: notAllowed,
  EPERM: notAllowed,
  EROFS: 'The file system is read-only',
  ENOTDIR: 'A file is where a directory is expected',
}
