import { hash } from 'node:crypto'
import type { RecordLimit } from '@domains-and-files/auth'
import type { Domain } from '../dns/domain-name.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { HostRecord, Zone } from '../dns/record.ts'
import type { ChangeRequest } from '../ledger/ledger.ts'

/** A change of a zone as a caller requests it. */
export interface ZoneWrite {
  edit: ZoneEdit
  ifMatch: string | undefined
  /** `*` refuses to replace a zone or an RRset that exists. */
  ifNoneMatch?: string | undefined
  dryRun: boolean
  /** Proceeds where records of a type that cannot be sent would be lost. */
  force: boolean
  by: string
  /** Name of the API token, if one was used. */
  token?: string | undefined
  /** The only RRsets that the token may write. */
  recordLimits?: RecordLimit[] | undefined
  requestId: string
  /** The same user, key and write within 24 hours get the same result and no second write. */
  idempotencyKey?: string | undefined
}

export interface WriteResult {
  /** The zone that this change was worked out against. */
  before: Zone
  zone: Zone
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  warnings: string[]
  /** False: the registrar reported success, but the zone could not be read back yet. */
  verified: boolean
}

/** A write that waits for its batch. */
export interface QueuedWrite {
  request: ChangeRequest
  dryRun: boolean
  /** The ledger's id: set for an asynchronous change, and once an intent is recorded. */
  id: number | undefined
  /** Nobody waits for an asynchronous change: it stays queued through the registrar's outages. */
  isAsync: boolean
  resolve: (result: WriteResult) => void
  reject: (error: unknown) => void
}

/** A write as the ledger stores it. `mode` is part of what an idempotency key stands for. */
export function toChangeRequest(
  domain: Domain,
  write: ZoneWrite,
  mode: 'sync' | 'async' = 'sync',
): ChangeRequest {
  const { edit, ifMatch, ifNoneMatch, force, by, token, recordLimits, requestId } = write
  const { idempotencyKey: key } = write
  const content = { domain: domain.name, edit, ifMatch, ifNoneMatch, force }
  const fingerprint = hash('sha256', JSON.stringify([content, mode]), 'base64url')
  const idempotency = key === undefined ? undefined : { key, fingerprint }
  return { ...content, by, token, recordLimits, requestId, idempotency }
}
