import { type HttpError, type Logger, slices } from '@domains-and-files/http'
import type { Zone } from '../../dns/zone.ts'
import { changeSuperseded } from '../../errors.ts'
import {
  type ChangeOutcome,
  type EvaluatedWrite,
  isDatabaseAway,
  type Ledger,
  type QueuedChange,
  type SendOutcome,
  toStoredProblem,
} from '../../ledger/ledger.ts'
import type { WaitingClients } from '../waiting-clients.ts'
import { isChange, resultOf } from './evaluate-write.ts'
import type { WriteOutcome } from './verified-write.ts'

/** How a write ends: what the ledger records, and what its client gets. */
export interface WriteEnd extends ChangeOutcome {
  write: QueuedChange
  /** What the write has done, and the zone that was read; otherwise its client gets the error. */
  done?: { each: EvaluatedWrite; zone: Zone | undefined }
}

/** One setHosts that has ended: what it was based on, and the writes of its batch. */
export interface EndedSend {
  id: number
  /** The zone as it was read before. */
  base: Zone
  /** The change by which the service repairs a late write. */
  repair: EvaluatedWrite | undefined
  evaluated: EvaluatedWrite[]
  outcome: WriteOutcome
}

/** The warning of a write that is done, but not read back yet. */
export const notVerified = 'the registrar reported success, but the zone could not be read back yet'
const notRecorded = 'the change is made, but its outcome could not be recorded in the history'

interface RecorderOptions {
  ledger: Ledger
  log: Logger
  clients: Pick<WaitingClients, 'resolve' | 'reject'>
}

/** Pause before an unavailable database is tried again: one attempt may take its whole time limit. */
const awayMs = 1_000

/**
 * Records how the writes of a batch ended, and then answers them. A later batch resolves what could not be recorded while
 * the database was away.
 */
export class BatchRecorder {
  readonly #options: RecorderOptions
  #awayAt = Number.NEGATIVE_INFINITY
  /** Why the ledger lacks an outcome. */
  failure: unknown
  /** Writes of which nothing was done. */
  readonly undone = new Set<QueuedChange>()

  constructor(options: RecorderOptions) {
    this.#options = options
  }

  /** Ends writes that no send carries. */
  async end(ends: WriteEnd[]): Promise<void> {
    const [first] = ends
    if (!first) return
    const { domain } = first.write.request
    const away = ends.find(isAway)
    if (away) this.fail(away.error)
    const isForgettable = ends.every(
      ({ write, effect }) => effect && !write.isAsync && !write.request.idempotency,
    )
    const { ledger } = this.#options
    await this.#record(domain, () => ledger.endChanges(domain, ends, isForgettable))
    await this.answer(ends)
  }

  /**
   * Ends a send together with its repair and these writes, which are not answered yet.
   * @returns the version of the zone; undefined where the ledger failed: the send stays open, and is resolved by reading
   * the zone later.
   */
  async endSend(send: EndedSend, ends: WriteEnd[]): Promise<number | undefined> {
    const { ledger, log } = this.#options
    const { id, outcome, evaluated, repair } = send
    const { kind, unanswered } = outcome
    const { domain } = send.base
    if (kind === 'differs' || kind === 'unknown') {
      const changes = evaluated.filter(isChange).map((each) => factsOf(each.write, each))
      log.error({ domain, detail: outcome.error.message, changes }, 'write not confirmed')
    }
    const repaired = repair ? [endWith(send, repair, kind === 'written')] : []
    // Writes that failed because the database was away are not ended: the next batch carries them out.
    const changes = [...repaired, ...ends.filter((each) => !isAway(each))]
    const found = 'zone' in outcome && kind !== 'refused' ? outcome.zone : undefined
    const ended = { state: stateOf(outcome, ends), found, unanswered, changes }
    return this.#record(domain, () => ledger.endSend({ id, domain }, ended))
  }

  async answer(ends: WriteEnd[], isRecorded = true): Promise<void> {
    const { clients, log } = this.#options
    const nextSlice = slices()
    for (const { write, status, isUnsent, error, done, verified, warnings } of ends) {
      await nextSlice() // Each answer may have 400 KB.
      if (status === 'queued' || status === 'refused') this.undone.add(write)
      if (!done) {
        clients.reject(write, error)
        continue
      }
      const told = [...(warnings ?? done.each.warnings)]
      if (!isRecorded && !isUnsent) told.push(notRecorded)
      const answer = resultOf({ ...done.each, warnings: told }, done.zone, verified)
      if (!isUnsent) log.info(factsOf(write, answer), 'zone written')
      clients.resolve(write, answer)
    }
  }

  // The registrar has the zone: a failing ledger must not turn a done write into a failed one.
  async #record<Result>(domain: string, run: () => Promise<Result>): Promise<Result | undefined> {
    if (performance.now() - this.#awayAt < awayMs) return undefined
    try {
      return await run()
    } catch (error) {
      this.fail(error)
      this.#options.log.error({ err: error, domain }, 'outcome not recorded')
      return undefined
    }
  }

  /** The ledger lacks an outcome: its changes are still queued, or their send is open. */
  fail(error: unknown) {
    if (isDatabaseAway(error)) this.#awayAt = performance.now()
    this.failure ??= error
  }
}

const isAway = ({ error }: WriteEnd) => isDatabaseAway(error)

const factsOf = (
  { request, id }: QueuedChange,
  { added, removed }: { added: unknown[]; removed: unknown[] },
) => ({
  domain: request.domain,
  change: id,
  by: request.by,
  request_id: request.requestId,
  added: added.length,
  removed: removed.length,
})

/**
 * The end of a write of which nothing was done. A failure that may pass queues an asynchronous change again, and releases
 * the idempotency key of any other.
 */
export function failed(write: QueuedChange, error: unknown): WriteEnd {
  const releaseKey = toStoredProblem(error).status >= 500
  const end = { write, id: write.id, isUnsent: true, error }
  if (write.isAsync && releaseKey) return { ...end, status: 'queued' }
  return { ...end, status: 'refused', releaseKey }
}

/** The end of a write that a later one has made pointless. */
export const superseded = (write: QueuedChange): WriteEnd => ({
  ...{ write, id: write.id, status: 'cancelled', isUnsent: true, releaseKey: true },
  error: changeSuperseded(write.id),
})

/** The end of a write that needs no send: it changes nothing, or it failed by itself. */
export function unsent(each: EvaluatedWrite, zone?: Zone): WriteEnd {
  const { write, error } = each
  if (error !== undefined) return failed(write, error)
  const done = { each, zone }
  return { write, id: write.id, status: 'confirmed', isUnsent: true, effect: each, done }
}

/** The end of a write whose content the registrar refused: the zone stayed as it was. */
export function refused(write: QueuedChange, error: HttpError, zone: Zone): WriteEnd {
  if (write.isAsync && error.status >= 500) return failed(write, error)
  const zones = { before: zone, after: zone }
  return { write, id: write.id, status: 'refused', error, zones }
}

/** The end of a write that depends on a send. */
export function endWith(send: EndedSend, each: EvaluatedWrite, isDone: boolean): WriteEnd {
  const { outcome, base } = send
  const { write } = each
  // Where the zone differs from the intended one, the zones that were read replace those of the intent.
  const zones = outcome.kind === 'differs' ? { before: base, after: outcome.zone } : undefined
  const end = { write, id: write.id, zones }
  if (isDone) {
    const verified = outcome.kind !== 'written' || outcome.verified
    const warnings = verified ? each.warnings : [...each.warnings, notVerified]
    const zone = 'zone' in outcome ? outcome.zone : undefined
    return { ...end, status: 'confirmed', verified, warnings, done: { each, zone } }
  }
  if (outcome.kind === 'written') return unsent(each, outcome.zone)
  const { error, kind } = outcome
  if (kind === 'unsent' || !isChange(each)) return failed(write, error)
  if (kind === 'refused') return refused(write, error, base)
  return { ...end, status: 'unconfirmed', error }
}

function stateOf(outcome: WriteOutcome, ends: WriteEnd[]): SendOutcome['state'] {
  if (outcome.kind === 'written') return outcome.verified ? 'settled' : 'unverified'
  if (outcome.kind !== 'differs') return outcome.kind
  const isDone = ({ isUnsent, status }: WriteEnd) => !isUnsent && status === 'confirmed'
  return ends.some(isDone) ? 'settled' : 'closed'
}
