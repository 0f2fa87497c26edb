import type { RecordLimit } from '@domains-and-files/auth'
import type { NamedRrset, ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { Delta, HostRecord, Row, Zone } from '../dns/record.ts'

/**
 * `proposed`: awaits another person's approval. `rejected`: not approved. `queued`: accepted, waits. `sending`: about to
 * be sent, or sent without a known outcome. `confirmed`: the registrar has it. `refused`: not done, with the problem.
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

/** A zone as stored: rows as the registrar gave them, so that a restore sends the same bytes. */
export interface Snapshot {
  emailType: string | undefined
  rows: Row[]
}

/** A failure as stored with its change. */
export interface StoredProblem {
  status: number
  code: string
  detail: string
  errors?: { path: string; message: string }[] | undefined
  /** Of the response, such as ETag and Retry-After. */
  headers?: Record<string, string> | undefined
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
  /** Name of the API token, if one was used. */
  token?: string | undefined
  /** Id of the user or of the token: names may be used again. Absent: `by` identifies the author. */
  callerId?: string | undefined
  /** The only RRsets that the token may write. */
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
  approved?: Delta | undefined
}

/** A warning about a change; with `rrset`, only for callers that may read that RRset. */
export type Warning = string | { rrset: NamedRrset; text: string }

/** The effect of a change, evaluated against the zone that was read. */
export interface ChangeEffect {
  before: Zone
  after: Zone
  warnings: Warning[]
}

/** A change that is about to be sent. */
export interface Intent extends ChangeEffect {
  /** 0 or undefined until the ledger has it. */
  id: number | undefined
  request: ChangeRequest
}

/** One setHosts: what the zone was, what was sent, and the changes that it carries. */
export interface SendIntent {
  domain: string
  base: Zone
  zone: Zone
  intents: Intent[]
  /** Late writes that this send repairs; each is repaired at most once for each unanswered transmission. */
  repairs: number[]
}

/** How a change ended, or that it is queued again. */
export interface ChangeOutcome {
  id: number
  /** `queued`: an asynchronous change without effect so far, to be carried out later. */
  status: 'queued' | 'confirmed' | 'refused' | 'unconfirmed' | 'cancelled'
  /** Default: true. */
  verified?: boolean
  /** Default: as they are. */
  warnings?: Warning[]
  problem?: StoredProblem | undefined
  reason?: 'superseded'
  /**
   * Nothing of it was sent. The outcome is ignored where a send without an outcome carries the change. A queued change
   * waits longer each time.
   */
  isUnsent?: boolean
  /** The effect of the change, where no send has carried it. */
  effect?: ChangeEffect
  /** Replaces the zones of the intent, where the zone that was read differs from them. */
  zones?: { before: Zone; after: Zone } | undefined
  /** Forgets the idempotency key, so that a repeated request is carried out. */
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
  /** The send did not happen: another send has to repair the late writes that it should have repaired. */
  releaseRepairs?: boolean
  changes: ChangeOutcome[]
}

/** A send that the registrar may still carry out, and the confirmed zone that it would overwrite. */
export interface LateSend {
  id: number
  zone: Snapshot
  confirmed: Snapshot
}

/** A send that may have reached the registrar: the zone that it replaced, and the zone that it left. */
export interface RecentSend {
  base: Snapshot
  zone: Snapshot
  /** The registrar reported success, or the zone was read afterwards. */
  isDone: boolean
}

/** The zones of a change. `added` and `removed` are the change's own rows. */
export interface ChangeZones {
  before: Snapshot
  after: Snapshot
  added: Row[]
  removed: Row[]
}

/** A change that waits for a batch. */
export interface QueuedChange {
  id: number
  /** No client waits for it. */
  isAsync: boolean
  request: ChangeRequest
}

export interface ChangeFilter {
  /** Names and `*.name` patterns that the reader may see; undefined: all. */
  domains?: string[] | undefined
  domain?: string | undefined
  by?: string | undefined
  status?: ChangeStatus | undefined
  since?: Date | undefined
  /** Only changes that reached the registrar. */
  sentOnly?: boolean
  /** Only changes with a lower id. */
  before?: number | undefined
}

/** How long the registrar may still carry out a send that was given up. */
export const lateMs = 600_000

/** The reason of a change that did not come through this service. */
export const outsideReason = 'outside'
