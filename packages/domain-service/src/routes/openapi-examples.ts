import type { HeaderDoc } from '@domains-and-files/http'
import * as errors from '../errors.ts'

// Examples for the description of the API, and parts that several routes share. A schema without one shows those of its
// fields.

/** A domain of the sandbox, so that what the docs page shows can be tried at once. */
export const domain = 'alder-and-finch.com'

export const record = { id: 'b71c42652efd', name: 'hello', type: 'A', address: '192.0.2.10', ttl: 1800 }

export const change = {
  id: 1,
  at: '2027-01-15T09:30:00.000Z',
  created_at: '2027-01-15T09:30:00.000Z',
  by: 'admin',
  request_id: '5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44',
  status: 'confirmed' as const,
  changes: { added: [record], removed: [], kept: 0 },
  domain,
  sent_at: '2027-01-15T09:30:00.000Z',
  ended_at: '2027-01-15T09:30:01.000Z',
}

const etag = '"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"'

/** Response headers of a cached answer. */
export const cacheHeaders: Record<string, HeaderDoc> = {
  age: { description: 'Seconds since the registrar told it', example: '12' },
  warning: {
    description: 'There when the registrar fails and this is older than it should be',
    example: '110 - "Response is Stale"',
  },
}

/** The request header that accepts a cached answer or demands a fresh one. */
export const takesFresh: Record<string, HeaderDoc> = {
  'cache-control': {
    description: '`no-cache`: not from the cache (at the cost of a call to the registrar)',
    example: 'no-cache',
  },
}

export const zoneTag: Record<string, HeaderDoc> = {
  etag: { description: 'Of the whole zone: send it as If-Match with a write', example: etag },
}

/** Headers of every write. */
export const writeHeaders: Record<string, HeaderDoc> = {
  'if-match': { description: 'The ETag of the zone as you read it: write only if it is still that', example: etag },
  prefer: {
    description: '`respond-async`: answer 202 at once and carry the change out when calls are free',
    example: 'respond-async',
  },
  'idempotency-key': {
    description: 'Repeating the request with this key within 24 hours writes nothing twice',
    example: '7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77',
  },
}

export const takesNoneMatch: Record<string, HeaderDoc> = {
  'if-none-match': { description: 'The ETag of the zone that you have: 304 if it is still that', example: etag },
}

/** Failures of any call to the registrar. */
export const registrarFailures = [
  errors.registrarRejected('Parameter SearchTerm is invalid'),
  errors.registrarAuth(),
  errors.registrarError('error 3050900'),
  errors.registrarBadAnswer('is cut short'),
  errors.registrarUnreachable(undefined),
  errors.registrarBusy(12),
  errors.registrarUnavailable(5),
  errors.registrarTimeout(15_000),
]

/** Failures of any call about one domain. */
export const domainFailures = [
  ...registrarFailures,
  errors.domainNotFound(domain),
  errors.domainNotEditable(domain),
  errors.dnsNotManaged(domain),
]

/** Failures of writes of a zone. */
export const writeFailures = [
  ...domainFailures,
  errors.emailTypeConflict("The zone's email type is FWD, and a first MX record would end that"),
  errors.unsupportedRecords([{ ...record, name: '_sip._tcp', type: 'SRV' }]),
  errors.preconditionFailed(etag),
  errors.tooManyRecords(),
  errors.recordNotFound(record.id),
  errors.recordExists(record),
  errors.recordConflict(record, { ...record, id: '5f0c1a526c3e', type: 'CNAME' }, 'a CNAME is alone at its name'),
  errors.writeNotConfirmed('The change was sent, but the zone could not be read back: read it before you try again'),
  errors.tooManyChanges('You have 1000 queued changes'),
  errors.tooManyWaiting(),
  errors.ledgerUnavailable(undefined),
  errors.insufficientStorage(undefined),
  errors.idempotencyKeyReused(),
]
