import { LRUCache } from 'lru-cache'
import Negotiator from 'negotiator'
import { type ContentCoding, compressedCodings } from './content-codings.ts'

/**
 * The codings that a client accepts, best first (RFC 9110, 12.5.3). Identity is always among them: a client that
 * excludes it is better served by a body that it may not want than by a 406.
 */
export function preferCodings(acceptEncoding: string | undefined): readonly ContentCoding[] {
  if (acceptEncoding === undefined || acceptEncoding === '') return identityOnly
  const known = negotiated.get(acceptEncoding)
  if (known) return known
  const codings = negotiate(acceptEncoding)
  negotiated.set(acceptEncoding, codings)
  return codings
}

/** The best accepted coding that is stored. */
export const chooseCoding = (preferred: readonly ContentCoding[], stored: readonly ContentCoding[]): ContentCoding =>
  preferred.find((coding) => stored.includes(coding)) ?? 'identity'

/** The strong entity tag of a representation; each coding has its own. */
export const contentTag = (digest: string, coding: ContentCoding) =>
  coding === 'identity' ? `"${digest}"` : `"${digest}-${coding}"`

const identityOnly: readonly ContentCoding[] = ['identity']
// Of codings with equal weight the one that compresses best is chosen.
const order: ContentCoding[] = [...compressedCodings, 'identity']

// Browsers send a handful of different fields.
const negotiated = new LRUCache<string, readonly ContentCoding[]>({ max: 256 })

// `preferred` is an option of negotiator 1.0 that its types, for 0.6, lack.
type Negotiation = {
  encodings(available: string[], options: { preferred: string[] }): ContentCoding[]
}

function negotiate(acceptEncoding: string): ContentCoding[] {
  // `x-gzip` is an old name of gzip (RFC 9110, 8.4.1.3).
  const field = acceptEncoding.toLowerCase().replaceAll('x-gzip', 'gzip')
  const negotiator = new Negotiator({ headers: { 'accept-encoding': field } }) as Negotiation
  const accepted = negotiator.encodings(order, { preferred: order })
  return accepted.includes('identity') ? accepted : [...accepted, 'identity']
}
