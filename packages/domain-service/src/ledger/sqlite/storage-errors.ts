import { insufficientStorage, ledgerUnavailable } from '../../errors.ts'

/** The error that a client gets for a failed write of the database: 507 on a full disk, else 503; others unchanged. */
export function toStorageError(error: unknown): unknown {
  const { code } = error as { code?: string } // Read as what it may have; it may be missing.
  if (code === 'SQLITE_FULL') return insufficientStorage(error)
  return code?.startsWith('SQLITE_') ? ledgerUnavailable(error) : error
}
