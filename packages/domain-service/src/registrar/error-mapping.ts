import type { HttpError } from '@domains-and-files/http'
import {
  dnsNotManaged,
  domainNotEditable,
  domainNotFound,
  registrarAuth,
  registrarBusy,
  registrarError,
  registrarRejected,
  tooManyRecords,
} from '../errors.ts'

/** An error element of the registrar's answer. */
export interface RegistrarError {
  number: string
  words: string
}

/**
 * What an error means to us. `refused`: it was judged and not done. `busy`: it was not even looked at. `unknown`: it
 * may have been done, and may work when tried again. `doubtful`: the same, but trying again is no use. `auth`: the
 * registrar does not want this service at all.
 */
export interface Verdict {
  kind: 'refused' | 'busy' | 'unknown' | 'doubtful' | 'auth'
  error: HttpError
}

/** Judges an error by its number and the command: the same number can mean different things. */
export function mapRegistrarError(
  refusal: RegistrarError,
  command: string,
  domain: string,
): Verdict {
  const { number } = refusal
  const refused = (error: HttpError): Verdict => ({ kind: 'refused', error })
  if (authNumbers.has(number) || /^101/.test(number))
    return { kind: 'auth', error: registrarAuth() }
  if (number === '500000') return { kind: 'busy', error: registrarBusy(60) }
  if (notFound.has(number)) return refused(domainNotFound(domain))
  if (number === '2030166') {
    return refused(
      command === 'namecheap.domains.getInfo' ? domainNotFound(domain) : domainNotEditable(domain),
    )
  }
  if (number === '4011103') return refused(domainNotEditable(domain))
  if (number === '2030288') return refused(dnsNotManaged(domain))
  if (number === '3013288' || number === '4013288')
    return refused(tooManyRecords(tidy(refusal.words)))
  if (/^201[01]/.test(number)) return refused(registrarRejected(tidy(refusal.words)))
  const kind = passing.has(number) ? 'unknown' : 'doubtful'
  return { kind, error: registrarError(`error ${number || 'without a number'}`) }
}

const authNumbers = new Set(['1030408', '1050900'])
const notFound = new Set(['2019166', '2016166', '3016166'])

// "Unknown exceptions" of the registrar and its suppliers: gone when asked again, and no word on what was done.
const passing = new Set(['3050900', '5019169', '5050169', '5050900'])

/** The registrar's words for a person: printable, and not longer than a sentence needs. */
export function tidy(words: string): string {
  const text = words
    .replace(/[^\P{C}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return text.length > 300 ? `${text.slice(0, 300)}…` : text || 'it gave no reason'
}
