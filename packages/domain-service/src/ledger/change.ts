import type { RecordLimit } from '@domains-and-files/auth'
import { databaseProblem, HttpError } from '@domains-and-files/http'
import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { HostRecord, NamedRrset } from '../dns/record.ts'
import type { Delta, Zone } from '../dns/zone.ts'

/**
 * `proposed`: awaits another person's approval. `rejected`: not approved. `queued`: accepted, waits. `sending`: its send
 * is recorded, and has no known outcome. `confirmed`: the registrar has it. `refused`: not done, with the problem.
 * `unconfirmed`: sent, but the zone is unknown or differs. `cancelled`: withdrawn before it was sent.
 */
export const changeStatuses = [
  'proposed',
  'rejected',
  'queued',
  'sending',
  'confirmed',
  'refused',
  'unconfirmed',
  'cancelled',
] as const

export type ChangeStatus = (typeof changeStatuses)[number]

/** The failure of a change. */
export interface StoredProblem {
  status: number
  code: string
  detail: string
  errors?: { path: string; message: string }[] | undefined
  /** Of the response, such as ETag and Retry-After. */
  headers?: Record<string, string> | undefined
}

/** Errors other than HttpErrors and database failures are internal faults. */
export function toStoredProblem(error: unknown): StoredProblem {
  const failure = error instanceof HttpError ? error : databaseProblem(error)
  if (!failure) return { status: 500, code: 'internal_error', detail: 'Internal error' }
  const { status, code, message: detail, errors, headers } = failure
  return { status, code, detail, errors, headers }
}

export const fromStoredProblem = ({ status, code, detail, errors, headers }: StoredProblem) =>
  new HttpError(status, code, detail, { errors, headers })

/** Whether an error, or the problem made of it, means that the database of the replicas cannot be used now. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError) return true
  return error instanceof HttpError && isDatabaseAway(error.cause)
}

/** What one change added and removed, bounded: `omitted` counts the records left out. */
export interface ChangeSummary {
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  omitted?: { added: number; removed: number }
}

/** A change as its author requested it: data only, so that another process can carry it out. */
export interface ChangeRequest {
  domain: string
  by: string
  /** Name of the API token. */
  token?: string | undefined
  /** Id of the user or of the token: names may be used again. Absent: `by` identifies the author, also for its keys. */
  callerId?: string | undefined
  /** The token may write these RRsets only. */
  recordLimits?: RecordLimit[] | undefined
  requestId: string
  /** Why the service itself made this change. */
  reason?: string | undefined
  edit: ZoneEdit
  ifMatch?: string | undefined
  ifNoneMatch?: string | undefined
  force: boolean
  idempotency?: { key: string; fingerprint: string } | undefined
  /** The effect that another person has approved: a change with any other effect is refused. */
  approved?: (Delta & { emailTypeBefore?: string | undefined }) | undefined
}

/** A warning about a change; with `rrset`, only for callers that may read that RRset. */
export type Warning = string | { rrset: NamedRrset; text: string }

/** `added` and `removed` are the change's own rows. */
export interface ChangeZones extends Delta {
  before: Zone
  after: Zone
}

/** What a change does to the zone that was read. */
export interface ChangeEffect extends ChangeZones {
  warnings: Warning[]
}

/** A queued change with its effect, before anything is sent. */
export interface EvaluatedWrite extends ChangeEffect {
  write: QueuedChange
  /** The write's own failure; `after` is then `before`, as for every write that changes nothing. */
  error?: unknown
}

/** One setHosts: what the zone was, what was sent, and the changes that it carries. */
export interface SendIntent {
  base: Zone
  zone: Zone
  intents: EvaluatedWrite[]
  /** Late writes that this send repairs; each is repaired at most once for each unanswered transmission. */
  repairs: number[]
}

/** How a change ended, or that it is queued again. */
export interface ChangeOutcome {
  id: number
  /** `queued`: asynchronous, without effect so far, to be carried out later. `cancelled`: superseded by a later change. */
  status: 'queued' | 'confirmed' | 'refused' | 'unconfirmed' | 'cancelled'
  /** False: the registrar reported success, but the zone could not be read back yet. */
  verified?: boolean
  /** Default: none where nothing was done, else as they are. */
  warnings?: Warning[]
  /** Stored as the problem of a refused or unconfirmed change. */
  error?: unknown
  /**
   * Nothing of it was sent. The outcome is ignored where the change is not queued any more. A queued change waits longer
   * each time.
   */
  isUnsent?: boolean
  /** The effect of the change, where no send has carried it. */
  effect?: ChangeEffect
  /** Replaces the zones of the intent, where the zone that was read differs from them. */
  zones?: Pick<ChangeZones, 'before' | 'after'> | undefined
  /** A repeated request with its idempotency key is carried out. */
  releaseKey?: boolean
}

/**
 * How a send ended. `settled`: the zone was read afterwards. `unverified`: the registrar reported success, the zone could
 * not be read. `refused`: not done. `unknown`: may be done. `closed`: never known. `unsent`: never sent.
 */
export type SendState = 'settled' | 'unverified' | 'refused' | 'unknown' | 'closed' | 'unsent'

export interface SendOutcome {
  state: SendState
  /** The zone as it was read afterwards. */
  found?: Zone | undefined
  /** The zone as it is now, where later sends have replaced `found`. */
  latest?: Zone | undefined
  /** How many of its transmissions got no answer, so that they may still be carried out. */
  unanswered: number
  changes: ChangeOutcome[]
}

/** A send that the registrar may still carry out, and the confirmed zone that it would overwrite. */
export interface LateSend {
  id: number
  /** How many of its transmissions may still be carried out. */
  unanswered: number
  zone: Zone
  confirmed: Zone
}

/** A send that may have reached the registrar: the zone that it replaced, and the zone that it left. */
export interface RecentSend {
  base: Zone
  zone: Zone
  /** The registrar reported success, or the zone was read afterwards. */
  isDone: boolean
}

/** In the queue, or in a batch. */
export interface QueuedChange {
  /** 0 until the ledger has a change of the service itself. */
  id: number
  /** No client waits for it. It stays queued through the registrar's outages. */
  isAsync: boolean
  request: ChangeRequest
}

export interface ChangeFilter {
  /** Names and `*.name` patterns that the reader may see; undefined: all. */
  domains?: string[] | undefined
  domain?: string | undefined
  by?: string | undefined
  status?: ChangeStatus | undefined
  requestId?: string
  since?: Date | undefined
  /** Only changes that reached the registrar. */
  sentOnly?: boolean
}

/** How long the registrar may still carry out a send that was given up. */
export const lateMs = 600_000

/** The reason of a change that did not come through this service. */
export const outsideReason = 'outside'
