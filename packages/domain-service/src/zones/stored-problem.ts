import { HttpError } from '@domains-and-files/http'
import type { StoredProblem } from '../ledger/ledger.ts'

/** A failure as the ledger stores it. Anything but an HttpError is a fault of ours, without details. */
export function toStoredProblem(error: unknown): StoredProblem {
  if (!(error instanceof HttpError)) {
    return { status: 500, code: 'internal_error', detail: 'Internal error' }
  }
  const { status, code, message, errors, headers } = error
  return { status, code, detail: message, ...(errors && { errors }), headers }
}

export const fromStoredProblem = ({ status, code, detail, errors, headers }: StoredProblem) =>
  new HttpError(status, code, detail, { ...(errors && { errors }), ...(headers && { headers }) })
