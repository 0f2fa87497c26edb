import { DatabaseUnavailableError } from '@domains-and-files/persistence'
import { catalogLocked, insufficientStorage } from '../errors.ts'

/**
 * The error that a client gets for a failure of the disk or of SQLite: `insufficient_storage` for a full disk,
 * `unavailable` for a database that another process has locked or whose files are gone, and otherwise the failure itself.
 */
export function storageFailure(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^(?:ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHM)/.test(code))
    return insufficientStorage(error)
  if (code === 'DATABASE_UNAVAILABLE') return new DatabaseUnavailableError(error)
  return code.startsWith('SQLITE_BUSY') ? catalogLocked(error) : error
}

/** Throws the error that a client gets. */
export function throwStorageFailure(error: unknown): never {
  throw storageFailure(error)
}
