import { HttpError } from '@domains-and-files/http'
import * as problems from '../errors.ts'

/**
 * What a failed call says about its command. `refused`: evaluated and not done. `busy`: not evaluated. `unknown`:
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

/** A command that did not succeed: the problem that the client of this service gets, and the outcome of the command. */
export class CallFailed extends HttpError {
  readonly kind: FailureKind
  readonly number: string | undefined
  readonly rowIndexes: readonly number[]
  readonly isAnswer: boolean

  constructor(kind: FailureKind, problem: HttpError, details: Details = {}) {
    const { status, code, message, headers, cause } = problem
    super(status, code, message, { headers, cause })
    this.kind = kind
    this.number = details.number
    this.rowIndexes = details.rowIndexes ?? []
    this.isAnswer = details.isAnswer ?? false
  }
}

/** An answer that cannot be used: `registrar_bad_answer`, of unknown outcome. */
export const badAnswer = (fault: string, details?: Details) =>
  new CallFailed('unknown', problems.registrarBadAnswer(fault), details)

/** A well-formed answer whose result cannot be used. */
export const badResult = (fault: string) => badAnswer(fault, { isAnswer: true })

/** An error element of the registrar's answer. */
interface RegistrarError {
  number: string
  words: string
}

/** Maps an answer's errors, at least one. The most specific one decides; the words of all name rows. */
export function mapRegistrarErrors(errors: RegistrarError[], command: string, domain: string): CallFailed {
  const mapped = errors.map((error) => ({ error, ...mapRegistrarError(error, command, domain) }))
  const specific = mapped.find(({ problem }) => problem.code !== 'registrar_error') ?? mapped[0]
  if (!specific) throw new RangeError('no error to map')
  return new CallFailed(specific.kind, specific.problem, {
    number: specific.error.number,
    rowIndexes: [...new Set(errors.flatMap(({ words }) => rowsNamedIn(words)))].sort((a, b) => a - b),
    isAnswer: true,
  })
}

// By number and command: the same number has different meanings.
function mapRegistrarError(
  { number, words }: RegistrarError,
  command: string,
  domain: string,
): { kind: FailureKind; problem: HttpError } {
  const refused = (problem: HttpError) => ({ kind: 'refused' as const, problem })
  if (authNumbers.has(number) || /^101/.test(number)) return { kind: 'auth', problem: problems.registrarAuth() }
  if (number === '500000') return { kind: 'busy', problem: problems.registrarBusy(60) }
  if (notFound.has(number)) return refused(problems.domainNotFound(domain))
  if (number === '2030166' && command === 'namecheap.domains.getInfo') return refused(problems.domainNotFound(domain))
  if (number === '2030166' || number === '4011103') return refused(problems.domainNotEditable(domain))
  if (number === '2030288') return refused(problems.dnsNotManaged(domain))
  if (number === '3013288' || number === '4013288') return refused(problems.tooManyRecords(printable(words)))
  if (/^201[0-9]{4}$/.test(number)) return refused(problems.registrarRejected(printable(words)))
  const kind = transient.has(number) ? 'unknown' : 'doubtful'
  return { kind, problem: problems.registrarError(`error ${number || 'without a number'}`) }
}

const authNumbers = new Set(['1030408', '1050900'])
const notFound = new Set(['2019166', '2016166', '3016166'])

// "Unknown exceptions" of the registrar and its suppliers: a repeated read succeeds; a write may have been done.
const transient = new Set(['3050900', '5019169', '5050169', '5050900'])

// Parameters of setHosts are numbered from 1: `Address57` is the row at index 56.
const rowsNamedIn = (words: string): number[] =>
  [...words.matchAll(/\b(?:HostName|RecordType|Address|MXPref|TTL)([1-9][0-9]{0,3})\b/gi)].map(
    ([, number]) => Number(number) - 1,
  )

// The registrar's words in one line of at most 300 characters.
function printable(words: string): string {
  const text = words.replace(/[\p{C}\s]+/gu, ' ').trim()
  return text.length > 300 ? `${text.slice(0, 300)}…` : text || 'it gave no reason'
}
