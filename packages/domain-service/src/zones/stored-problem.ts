import { databaseProblem, HttpError } from '@domains-and-files/http'
import type { StoredProblem } from '../ledger/ledger.ts'

/** A failure as the ledger stores it. What is neither for the client nor of the database is a fault of ours. */
export function toStoredProblem(error: unknown): StoredProblem {
  const failure = error instanceof HttpError ? error : databaseProblem(error)
  if (!failure) return { status: 500, code: 'internal_error', detail: 'Internal error' }
  const { status, code, message, errors, headers } = failure
  return { status, code, detail: message, ...(errors && { errors }), headers }
}

export const fromStoredProblem = ({ status, code, detail, errors, headers }: StoredProblem) =>
  new HttpError(status, code, detail, { ...(errors && { errors }), ...(headers && { headers }) })
