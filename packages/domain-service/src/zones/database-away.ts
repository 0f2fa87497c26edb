import { HttpError } from '@domains-and-files/http'
import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'

/** Whether an error, or the problem made of it, means that the database of the replicas cannot be used now. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError) return true
  return error instanceof HttpError && isDatabaseAway(error.cause)
}
