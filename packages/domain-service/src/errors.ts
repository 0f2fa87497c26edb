import { type Fault, forbidden, HttpError, unavailable } from '@domains-and-files/http'
import type { HostRecord } from './dns/record.ts'

// Every failure that a client of this service can get, by name. The codes are the contract; the words may change.

export const domainNotFound = (domain: string) =>
  new HttpError(404, 'domain_not_found', `There is no domain ${domain} in this account`)

/** `errors` point at the ids of a batch that are not in the zone. */
export const recordNotFound = (id: string, errors?: Fault[]) =>
  new HttpError(404, 'record_not_found', `There is no record ${id} in this zone: read the zone again`, { errors })

export const rrsetNotFound = (name: string, type: string) =>
  new HttpError(404, 'record_not_found', `There is no ${name} ${type} in this zone`)

export const changeNotFound = (id: number | string) =>
  new HttpError(404, 'change_not_found', `There is no change ${id}`)

export const domainNotEditable = (domain: string) =>
  new HttpError(403, 'domain_not_editable', `The registrar does not let this account change ${domain}`)

export const emailTypeForbidden = () =>
  forbidden('A token that is limited to some records cannot change the email type')

export const forceForbidden = () =>
  forbidden('A token that is limited to some records cannot give up other records of the zone by ?force=true')

export const rightsEnded = () =>
  forbidden('The author of this change may not make it any more: its user or API token has fewer rights, or is gone')

export const dnsNotManaged = (domain: string) =>
  new HttpError(409, 'dns_not_managed', `${domain} has other nameservers than the registrar's: its records are there`)

export const recordExists = ({ id, name, type, address }: HostRecord) =>
  new HttpError(409, 'record_exists', `${name} ${type} ${address} is there already, as record ${id}`)

export function recordConflict(record: HostRecord, live: HostRecord, reason: string) {
  const detail = `${record.name} ${record.type} cannot be beside record ${live.id} (${live.name} ${live.type} ${live.address}): ${reason}`
  return new HttpError(409, 'record_conflict', detail)
}

export const revertConflict = (detail: string) =>
  new HttpError(409, 'revert_conflict', `Later changes touch the same records: ${detail}`)

export const emailTypeConflict = (detail: string) => new HttpError(409, 'email_type_conflict', detail)

export function unsupportedRecords(records: HostRecord[]) {
  const detail = `The registrar cannot be sent ${records.map((each) => `${each.name} ${each.type}`).join(', ')}: this write would delete them. Use ?force=true if you mean it`
  return new HttpError(409, 'unsupported_records', detail)
}

export const preconditionFailed = (
  etag: string,
  detail = 'The zone has changed since you read it: read it again and repeat your change',
) => new HttpError(412, 'precondition_failed', detail, { headers: { etag } })

export const alreadyExists = (etag: string) =>
  preconditionFailed(etag, 'If-None-Match: * replaces nothing, and there is something already')

export const tooManyRecords = (detail = 'A zone may have at most 150 records') =>
  new HttpError(422, 'too_many_records', detail)

export const registrarRejected = (words: string) =>
  new HttpError(422, 'registrar_rejected', `The registrar refused this: ${words}`)

export const writeNotConfirmed = (detail: string, cause?: unknown) =>
  new HttpError(502, 'write_not_confirmed', detail, { cause })

export const registrarAuth = () =>
  new HttpError(502, 'registrar_auth', 'The registrar refused the credentials or address of this service: see its log')

export const registrarError = (words: string) => new HttpError(502, 'registrar_error', `The registrar failed: ${words}`)

export const registrarBadAnswer = (what: string) =>
  new HttpError(502, 'registrar_bad_answer', `The registrar's answer cannot be used: it ${what}`)

export const registrarUnreachable = (cause: unknown) =>
  new HttpError(502, 'registrar_unreachable', 'The registrar cannot be reached: try again later', { cause })

export const registrarTimeout = (milliseconds: number) =>
  new HttpError(504, 'registrar_timeout', `The registrar did not answer within ${milliseconds} ms`)

export const registrarBusy = (seconds: number, why = 'Registrar rate limit reached') =>
  new HttpError(503, 'registrar_busy', `${why}: try again in ${seconds} s`, { retryAfter: seconds })

export const registrarUnavailable = (retryAfter: number) =>
  new HttpError(503, 'registrar_unavailable', 'The registrar fails and gets a pause: try again later', { retryAfter })

export const emailTypeUnknown = () =>
  emailTypeConflict(
    'The registrar does not tell the email type of this zone, and a write would set it: send "email_type" with the value that the zone must have, in a zone file "; domain-service email-type" with it',
  )

export const zoneKeepsChanging = () => unavailable(10, 'Somebody else keeps changing this zone: try again later')

export const serviceStopping = () => new HttpError(503, 'unavailable', 'The service is stopping: try again later')

export const ledgerUnavailable = (cause: unknown) =>
  unavailable(30, 'Changes cannot be recorded now, so nothing was sent: try again later', cause)

/** The replica that accepted it has not renewed it. */
export const changeCancelled = (id: number) =>
  unavailable(5, `Change ${id} was cancelled before it was sent: try again`)

export const changeSuperseded = (id: number | undefined) =>
  new HttpError(409, 'change_not_queued', `Change ${id} was superseded by a later one`)

/** Another replica has taken over, or may have. */
export const leaseLost = (name: string) =>
  unavailable(5, `This replica does not hold the lease of ${name} any more: try again later`)

export const insufficientStorage = (cause: unknown) =>
  new HttpError(507, 'insufficient_storage', 'The disk is full, so nothing was sent: free disk space', { cause })

export const idempotencyKeyReused = () =>
  new HttpError(422, 'idempotency_key_reused', 'This Idempotency-Key was used for another request: use a new one')

export const changeNotQueued = (id: number, status: string) =>
  new HttpError(409, 'change_not_queued', `Change ${id} is ${status}: only a queued change can be cancelled`)

export const changeClosed = (id: number, status: string) =>
  new HttpError(409, 'change_closed', `Change ${id} is ${status}: only a proposed change can be approved or rejected`)

export const ownChange = () =>
  new HttpError(403, 'own_change', 'Only another person than its author, logged in, can approve or reject this change')

export const ownProposal = () => forbidden('Only its author can cancel this change; others can reject a proposal')

/** `diffs`: what was proposed, and what the change would do now. */
export function changeOutdated(
  reason = 'it would change other records, or another email type, now',
  diffs?: { proposed: unknown; changes: unknown },
) {
  const detail = `The zone has changed since this was proposed: ${reason}. Look at it again`
  return new HttpError(409, 'change_outdated', detail, { members: diffs })
}

export const tooManyChanges = (what: string) =>
  new HttpError(429, 'too_many_changes', `${what}: try again when some of them have ended`, { retryAfter: 60 })

export const tooManyWaiting = () => unavailable(10, 'Too many writes wait for this domain: try again later')
