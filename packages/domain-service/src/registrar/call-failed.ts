import type { HttpError } from '@domains-and-files/http'
import { registrarBadAnswer } from '../errors.ts'

/**
 * What a failed call says about its command. `refused`: evaluated and not done. `busy`: not even looked at. `unknown`:
 * may have been done, and may succeed when repeated. `doubtful`: may have been done, repeating is no use. `auth`: the
 * registrar refuses this service as such.
 */
export type FailureKind = 'refused' | 'busy' | 'unknown' | 'doubtful' | 'auth'

interface Details {
  /** The registrar's error number, if it gave one. */
  number?: string | undefined
  /** Rows of the request that the registrar's words name (`Address57` is index 56), ascending. */
  rowIndexes?: number[]
  /**
   * Whether the registrar itself works: a well-formed answer about one domain says nothing about other domains. False
   * for lost, broken and foreign answers.
   */
  isAnswer?: boolean
}

/** A command that did not succeed. `error` is the answer for the client of this service. */
export class CallFailed extends Error {
  readonly kind: FailureKind
  readonly error: HttpError
  readonly number: string | undefined
  readonly rowIndexes: readonly number[]
  readonly isAnswer: boolean

  constructor(kind: FailureKind, error: HttpError, details: Details = {}) {
    super(error.message, { cause: error.cause })
    this.kind = kind
    this.error = error
    this.number = details.number
    this.rowIndexes = details.rowIndexes ?? []
    this.isAnswer = details.isAnswer ?? false
  }
}

/** An answer that cannot be used: `registrar_bad_answer`, of unknown outcome. */
export const badAnswer = (fault: string, details?: Details) =>
  new CallFailed('unknown', registrarBadAnswer(fault), details)

/** A well-formed answer whose result cannot be used. */
export const badResult = (fault: string) => badAnswer(fault, { isAnswer: true })
