import { databaseProblem, type HttpError, slices } from '@domains-and-files/http'
import { OutcomeUnknownError } from '@domains-and-files/persistence'
import type { Domain } from '../../dns/domain-name.ts'
import type { Zone } from '../../dns/zone.ts'
import { changeCancelled, changeSuperseded, writeNotConfirmed } from '../../errors.ts'
import {
  type ChangeOutcome,
  type EvaluatedWrite,
  fromStoredProblem,
  isDatabaseAway,
  type Ledger,
  type QueuedChange,
  type SendOutcome,
  toStoredProblem,
} from '../../ledger/ledger.ts'
import type { ZoneDependencies } from '../zone-dependencies.ts'
import { isChange, type WriteResult } from './evaluate-write.ts'
import type { WriteOutcome } from './registrar-zone.ts'

/** How a write ends: what the ledger records, and what its client gets. */
export interface WriteEnd extends ChangeOutcome {
  write: QueuedChange
  /** What the write has done, and the zone that was read; otherwise its client gets the error. */
  done?: { each: EvaluatedWrite; zone: Zone | undefined }
}

/** One setHosts that has ended: the zone as it was read before, and the writes that the zone has now. */
export interface EndedSend {
  id: number
  base: Zone
  outcome: WriteOutcome
  done: Set<EvaluatedWrite>
}

/** The warning of a write that is done, but not read back yet. */
export const notVerified = 'the registrar reported success, but the zone could not be read back yet'
const notRecorded = 'the change is made, but its outcome could not be recorded in the history'

export interface BatchOptions extends ZoneDependencies {
  domain: Domain
  /** Who waits for queued changes. */
  callers: string[]
  /** Where the writes wait, and their clients. */
  queue: {
    /** Adds the writes that are queued. Returns the id up to which it has added all: later ones would overtake others. */
    gather(writes: QueuedChange[]): Promise<number>
    resolve(write: QueuedChange, result: WriteResult): void
    reject(write: QueuedChange, error: unknown): void
  }
}

/** Pause before an unavailable database is tried again: one attempt may take its whole time limit. */
const awayMs = 1_000

/**
 * Records how the writes of a batch ended, and then answers them. A later batch resolves what could not be recorded while
 * the database was away.
 */
export class BatchRecorder {
  readonly #options: BatchOptions
  #awayAt = -Infinity
  /** Why the ledger lacks an outcome. */
  failure: unknown
  /** Writes of which nothing was done. */
  readonly undone = new Set<QueuedChange>()

  constructor(options: BatchOptions) {
    this.#options = options
  }

  /**
   * Ends these writes, with the send that carried them.
   * @returns the version of the zone; undefined where the ledger failed: the send stays open, and is resolved by reading
   * the zone later.
   */
  async end(ends: WriteEnd[], send?: EndedSend): Promise<number | undefined> {
    const { ledger, log, cache, domain } = this.#options
    const { name } = domain
    const away = send ? undefined : ends.find(isAway)
    if (away) this.#fail(away.error)
    const mayRecord = performance.now() - this.#awayAt >= awayMs
    let version: number | undefined
    try {
      // The registrar has the zone: a failing ledger must not turn a done write into a failed one.
      if (mayRecord && send) version = await ledger.endSend({ id: send.id, domain: name }, recorded(send, ends))
      else if (mayRecord && ends.length > 0) await ledger.endChanges(name, ends, ends.every(isForgettable))
    } catch (error) {
      this.#fail(error)
      log.error({ err: error, domain: name }, 'outcome not recorded')
    }
    if (send && !send.outcome.error) cache.put(name, send.outcome.found, version)
    await this.#answer(ends, !send || version !== undefined)
    return version
  }

  async #answer(ends: WriteEnd[], isRecorded: boolean): Promise<void> {
    const { queue } = this.#options
    const nextSlice = slices()
    for (const { write, status, isUnsent, error, done, verified = true, warnings } of ends) {
      await nextSlice() // Each answer may have 400 KB.
      if (status === 'queued' || status === 'refused') this.undone.add(write)
      if (!done) {
        queue.reject(write, error)
        continue
      }
      const shown = [...(warnings ?? done.each.warnings)]
      if (!isRecorded && !isUnsent) shown.push(notRecorded)
      const { each, zone = each.after } = done
      queue.resolve(write, { ...each, warnings: shown, zone, verified })
    }
  }

  /** The ledger lacks an outcome: its changes are still queued, or their send is open. */
  #fail(error: unknown) {
    if (isDatabaseAway(error)) this.#awayAt = performance.now()
    this.failure ??= error
  }
}

// Nobody asks for it later: a power cut may undo it.
const isForgettable = ({ write, effect }: WriteEnd) =>
  effect !== undefined && !write.isAsync && !write.request.idempotency

const isAway = ({ error }: WriteEnd) => error !== undefined && isDatabaseAway(error)

/** A send as the ledger records it. Writes that failed because the database was away stay: the next batch takes them. */
function recorded({ outcome, done }: EndedSend, ends: WriteEnd[]): SendOutcome {
  const state = outcome.state === 'closed' && done.size > 0 ? 'settled' : outcome.state
  return { ...outcome, state, changes: ends.filter((each) => !isAway(each)) }
}

/**
 * The end of a write of which nothing was done. A failure that may pass queues an asynchronous change again, and releases
 * the idempotency key of any other.
 */
export function failed(write: QueuedChange, error: unknown): WriteEnd {
  const releaseKey = toStoredProblem(error).status >= 500
  const end = notSent(write, error)
  if (write.isAsync && releaseKey) return { ...end, status: 'queued' }
  return { ...end, status: 'refused', releaseKey }
}

const notSent = (write: QueuedChange, error: unknown) => ({ write, id: write.id, isUnsent: true, error })

/** The end of a write that a later one has made pointless. It keeps its idempotency key: a repeat would undo the later one. */
export const superseded = (write: QueuedChange): WriteEnd => ({
  ...notSent(write, changeSuperseded(write.id)),
  status: 'cancelled',
})

/** The end of a write that needs no send: it changes nothing, or it failed by itself. */
export function unsent(each: EvaluatedWrite, zone?: Zone): WriteEnd {
  const { write, error } = each
  if (error !== undefined) return failed(write, error)
  return { write, id: write.id, status: 'confirmed', isUnsent: true, effect: each, done: { each, zone } }
}

/** The end of a write whose content the registrar refused: the zone stayed as it was. */
export function refused(write: QueuedChange, error: HttpError, zone: Zone): WriteEnd {
  if (write.isAsync && error.status >= 500) return failed(write, error)
  return { write, id: write.id, status: 'refused', error, zones: { before: zone, after: zone } }
}

/** The end of a write that depends on a send. */
export function endWith({ base, outcome, done }: EndedSend, each: EvaluatedWrite): WriteEnd {
  const { write } = each
  const { state, error } = outcome
  const zone = 'found' in outcome ? outcome.found : undefined
  // Where the zone differs from the intended one, the zones that were read replace those of the intent.
  const zones = state === 'closed' ? { before: base, after: outcome.found } : undefined
  const end = { write, id: write.id, zones }
  if (done.has(each)) {
    const verified = state !== 'unverified'
    const warnings = verified ? each.warnings : [...each.warnings, notVerified]
    return { ...end, status: 'confirmed', verified, warnings, done: { each, zone } }
  }
  if (!error) return unsent(each, zone)
  if (state === 'unsent' || !isChange(each)) return failed(write, error)
  if (state === 'refused') return refused(write, error, base)
  return { ...end, status: 'unconfirmed', error }
}

/** The result of a change that has ended, as the ledger has it. @throws {HttpError} where it is not confirmed. */
export async function readResult(ledger: Ledger, id: number, requestId: string): Promise<WriteResult> {
  const change = await ledger.find(id)
  // A standby was promoted that had not received it.
  if (change?.request_id !== requestId)
    throw databaseProblem(new OutcomeUnknownError(new Error(`change ${id} is lost`)))
  if (change.problem && change.status !== 'confirmed') throw fromStoredProblem(change.problem)
  if (change.status === 'cancelled') throw changeCancelled(id)
  if (change.status !== 'confirmed')
    throw writeNotConfirmed(`Change ${id} is not confirmed yet: read the zone before you try again`)
  const zones = await ledger.zonesOf(id)
  if (!zones) throw new Error(`change ${id} has no zones`)
  const { found = zones.after } = zones
  return { ...zones, warnings: change.warnings, zone: found, verified: change.verified === 1 }
}
