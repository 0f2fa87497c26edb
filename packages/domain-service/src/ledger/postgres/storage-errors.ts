import {
  DatabaseFullError,
  DatabaseUnavailableError,
  OutcomeUnknownError,
} from '@domains-and-files/persistence'
import { insufficientStorage, ledgerUnavailable } from '../../errors.ts'

/**
 * Runs what has to be recorded before anything is sent: where it fails or its outcome is unknown, nothing is sent.
 * @throws 503 `unavailable`, or 507 `insufficient_storage` on a full disk.
 */
export async function recorded<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof DatabaseFullError) throw insufficientStorage(error)
    const isAway = error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError
    throw isAway ? ledgerUnavailable(error) : error
  }
}
