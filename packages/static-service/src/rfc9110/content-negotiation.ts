import { LRUCache } from 'lru-cache'
import Negotiator from 'negotiator'
import { type ContentCoding, encodedForms } from '../blobs/blob-path.ts'

/**
 * The forms that a client takes, the best first (RFC 9110, 12.5.3). Identity is always among them: a client that
 * refuses it, too, is better served by a body that it may not want than by a 406.
 */
export function preferForms(acceptEncoding: string | undefined): readonly ContentCoding[] {
  if (acceptEncoding === undefined || acceptEncoding === '') return identityOnly
  const known = readBefore.get(acceptEncoding)
  if (known) return known
  const forms = negotiate(acceptEncoding)
  readBefore.set(acceptEncoding, forms)
  return forms
}

/** The best of what a client takes that there is. */
export const chooseForm = (
  preferred: readonly ContentCoding[],
  kept: readonly ContentCoding[],
): ContentCoding => preferred.find((form) => kept.includes(form)) ?? 'identity'

/** The strong entity tag of a form: that of the file for identity, and one of its own for each other. */
export const tagOf = (digest: string, form: ContentCoding) =>
  form === 'identity' ? `"${digest}"` : `"${digest}-${form}"`

const identityOnly: readonly ContentCoding[] = ['identity']
// Among forms that a client likes equally the smallest is taken, which comes first.
const order: ContentCoding[] = [...encodedForms, 'identity']

// Browsers send a handful of different fields, all day.
const readBefore = new LRUCache<string, readonly ContentCoding[]>({ max: 256 })

// `preferred` is a feature of negotiator 1.0 that its types, written for 0.6, do not know.
type Preferring = {
  encodings(available: string[], options: { preferred: string[] }): ContentCoding[]
}

function negotiate(acceptEncoding: string): ContentCoding[] {
  // `x-gzip` is an old name of gzip (RFC 9110, 8.4.1.3).
  const field = acceptEncoding.toLowerCase().replaceAll('x-gzip', 'gzip')
  const negotiator = new Negotiator({ headers: { 'accept-encoding': field } }) as Preferring
  const taken = negotiator.encodings(order, { preferred: order })
  return taken.includes('identity') ? taken : [...taken, 'identity']
}
