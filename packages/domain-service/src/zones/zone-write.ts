import { hash } from 'node:crypto'
import { type Caller, onlyProposes } from '@domains-and-files/auth'
import { databaseProblem, HttpError } from '@domains-and-files/http'
import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'
import type { Domain } from '../dns/domain-name.ts'
import { type HostRecord, recordsOf, type Zone } from '../dns/record.ts'
import { changeCancelled, writeNotConfirmed } from '../errors.ts'
import type {
  ChangeRequest,
  Ledger,
  QueuedChange,
  Snapshot,
  StoredProblem,
  Warning,
} from '../ledger/ledger.ts'

/** A change of a zone as a caller requests it. Without `callerId`: the service itself. */
export interface ZoneWrite
  extends Omit<ChangeRequest, 'domain' | 'reason' | 'idempotency' | 'approved'> {
  dryRun?: boolean
  /** Another person has to approve what this author writes. */
  mayOnlyPropose?: boolean | undefined
  /** The same caller, key and write within 24 hours get the same result and no second write. */
  idempotencyKey?: string | undefined
}

/** The author of a write. */
export const authorOf = ({ id, username, token, records, writes }: Caller) => ({
  by: username,
  token: token?.name,
  callerId: id,
  recordLimits: records,
  mayOnlyPropose: writes === 'propose',
})

export interface WriteResult {
  /** The zone that this change was worked out against. */
  before: Zone
  /** The zone as this change leaves it; later changes of its batch may follow. */
  after: Zone
  /** The zone that was read back. */
  zone: Zone
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  warnings: Warning[]
  /** False: the registrar reported success, but the zone could not be read back yet. */
  verified: boolean
}

/** A change that waits for its batch. An asynchronous one stays queued through the registrar's outages. */
export interface QueuedWrite extends QueuedChange {
  resolve: (result: WriteResult) => void
  reject: (error: unknown) => void
}

/**
 * A write as the ledger stores it. `mode` is part of what an idempotency key stands for.
 * @throws 403 for an author who may only propose, in any other mode.
 */
export function toChangeRequest(
  domain: Domain,
  write: ZoneWrite,
  mode: 'sync' | 'async' | 'propose' = 'sync',
): ChangeRequest {
  if (write.mayOnlyPropose && !write.dryRun && mode !== 'propose') throw onlyProposes()
  const { edit, ifMatch, ifNoneMatch, force, by, token, callerId, recordLimits } = write
  const { requestId, idempotencyKey: key } = write
  const content = { domain: domain.name, edit, ifMatch, ifNoneMatch, force }
  const fingerprint = () => hash('sha256', JSON.stringify([content, mode]), 'base64url')
  const idempotency = key === undefined ? undefined : { key, fingerprint: fingerprint() }
  return { ...content, by, token, callerId, recordLimits, requestId, idempotency }
}

/** The result of a change that has ended, as the ledger has it. @throws {HttpError} where it is not confirmed. */
export async function readEnd(ledger: Ledger, id: number): Promise<WriteResult> {
  const change = await ledger.find(id)
  if (change?.problem && change.status !== 'confirmed') throw fromStoredProblem(change.problem)
  if (change?.status === 'cancelled') throw changeCancelled(id)
  if (change?.status !== 'confirmed')
    throw writeNotConfirmed(`Change ${id} is not confirmed yet: read the zone before you try again`)
  const { domain, warnings, verified } = change
  const [zones, found] = [await ledger.zonesOf(id), await ledger.foundAfter(id)]
  if (!zones) throw new Error(`change ${id} has no zones`)
  const zoneOf = (snapshot: Snapshot): Zone => ({ domain, usesRegistrarDns: true, ...snapshot })
  return {
    before: zoneOf(zones.before),
    after: zoneOf(zones.after),
    zone: zoneOf(found ?? zones.after),
    ...recordsOf(zones, domain),
    kept: zones.after.rows.length - zones.added.length,
    warnings,
    verified,
  }
}

/** A failure as the ledger stores it. Errors other than HttpErrors and database failures are internal faults. */
export function toStoredProblem(error: unknown): StoredProblem {
  const failure = error instanceof HttpError ? error : databaseProblem(error)
  if (!failure) return { status: 500, code: 'internal_error', detail: 'Internal error' }
  const { status, code, message, errors, headers } = failure
  return { status, code, detail: message, ...(errors && { errors }), headers }
}

export const fromStoredProblem = ({ status, code, detail, errors, headers }: StoredProblem) =>
  new HttpError(status, code, detail, { ...(errors && { errors }), ...(headers && { headers }) })

/** Whether an error, or the problem made of it, means that the database of the replicas cannot be used now. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError) return true
  return error instanceof HttpError && isDatabaseAway(error.cause)
}

/** What happened in a batch: `isOpen`: a send of it has no final outcome. `hasWritten`: it has sent something. */
export interface BatchEnd {
  isOpen: boolean
  hasWritten: boolean
}
