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
import { isChange, resultOf, type WriteResult } from './evaluate-write.ts'
import type { WriteOutcome } from './verified-write.ts'

/** The clients of the changes of a batch. */
export interface BatchClients {
  resolve(write: QueuedChange, result: WriteResult): void
  reject(write: QueuedChange, error: unknown): void
}

/** How a write ends: what the ledger records, and what its client gets: the error of that, or a result. */
export interface WriteEnd {
  write: QueuedChange
  outcome: ChangeOutcome
  result?: (warnings: string[]) => WriteResult
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

/** Pause before an unavailable database is tried again: one attempt may take its whole time limit. */
const awayMs = 1_000

/**
 * Records how the writes of a batch ended, and then answers them. A later batch resolves what could not be recorded while
 * the database was away.
 */
export class BatchRecorder {
  readonly #ledger: Ledger
  readonly #log: Logger
  readonly #clients: BatchClients
  #awayAt = Number.NEGATIVE_INFINITY
  /** Why the ledger lacks an outcome. */
  failure: unknown
  /** Writes of which nothing was done. */
  readonly undone = new Set<QueuedChange>()

  constructor({ ledger, log }: { ledger: Ledger; log: Logger }, clients: BatchClients) {
    this.#ledger = ledger
    this.#log = log
    this.#clients = clients
  }

  /** Ends writes that no send carries. */
  async end(ends: WriteEnd[]): Promise<void> {
    const [first] = ends
    if (!first) return
    const { domain } = first.write.request
    const away = ends.find(isAway)
    if (away) this.fail(away.outcome.error)
    const isForgettable = ends.every(
      ({ write, outcome }) => outcome.effect && !write.isAsync && !write.request.idempotency,
    )
    const outcomes = ends.map(({ outcome }) => outcome)
    await this.#record(domain, () => this.#ledger.endChanges(domain, outcomes, isForgettable))
    await this.answer(ends)
  }

  /**
   * Ends a send together with its repair and these writes, which are not answered yet.
   * @returns the version of the zone; undefined where the ledger failed: the send stays open, and is resolved by reading
   * the zone later.
   */
  async endSend(send: EndedSend, ends: WriteEnd[]): Promise<number | undefined> {
    const { id, outcome, evaluated } = send
    const { domain } = send.base
    if (outcome.kind === 'differs' || outcome.kind === 'unknown') {
      const changes = evaluated.filter(isChange).map((each) => factsOf(each.write, each))
      this.#log.error({ domain, detail: outcome.error.message, changes }, 'write not confirmed')
    }
    // Writes that failed because the database was away are not ended: the next batch carries them out.
    const recorded = sendOutcome(
      send,
      ends.filter((each) => !isAway(each)),
    )
    return this.#record(domain, () => this.#ledger.endSend(id, recorded))
  }

  async answer(ends: WriteEnd[], isRecorded = true): Promise<void> {
    const nextSlice = slices()
    for (const { write, outcome, result } of ends) {
      await nextSlice() // Each answer may have 400 KB.
      if (outcome.status === 'queued' || outcome.status === 'refused') this.undone.add(write)
      if (!result) {
        this.#clients.reject(write, outcome.error)
        continue
      }
      const answer = result(isRecorded || outcome.isUnsent ? [] : [notRecorded])
      if (!outcome.isUnsent) this.#log.info(factsOf(write, answer), 'zone written')
      this.#clients.resolve(write, answer)
    }
  }

  // The registrar has the zone: a failing ledger must not turn a done write into a failed one.
  async #record<Result>(domain: string, run: () => Promise<Result>): Promise<Result | undefined> {
    if (performance.now() - this.#awayAt < awayMs) return undefined
    try {
      return await run()
    } catch (error) {
      this.fail(error)
      this.#log.error({ err: error, domain }, 'outcome not recorded')
      return undefined
    }
  }

  /** The ledger lacks an outcome: its changes are still queued, or their send is open. */
  fail(error: unknown) {
    if (isDatabaseAway(error)) this.#awayAt = performance.now()
    this.failure ??= error
  }
}

const isAway = ({ outcome }: WriteEnd) => isDatabaseAway(outcome.error)

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
  const { id, isAsync } = write
  const isUnsent = true
  const releaseKey = toStoredProblem(error).status >= 500
  if (isAsync && releaseKey)
    return { write, outcome: { id, status: 'queued', verified: false, isUnsent, error } }
  return { write, outcome: { id, status: 'refused', isUnsent, warnings: [], error, releaseKey } }
}

/** The end of a write that a later one has made pointless. */
export const superseded = (write: QueuedChange): WriteEnd => ({
  write,
  outcome: {
    id: write.id,
    status: 'cancelled',
    reason: 'superseded',
    isUnsent: true,
    warnings: [],
    error: changeSuperseded(write.id),
    releaseKey: true,
  },
})

/** The end of a write that needs no send: it changes nothing, or it failed by itself. */
export function unsent(each: EvaluatedWrite, zone?: Zone): WriteEnd {
  const { write, error } = each
  if (error !== undefined) return failed(write, error)
  return {
    write,
    outcome: { id: write.id, status: 'confirmed', isUnsent: true, effect: each },
    result: () => resultOf(each, zone),
  }
}

/** The end of a write whose content the registrar refused: the zone stayed as it was. */
export function refused(write: QueuedChange, error: HttpError, zone: Zone): WriteEnd {
  if (write.isAsync && error.status >= 500) return failed(write, error)
  const zones = { before: zone, after: zone }
  return { write, outcome: { id: write.id, status: 'refused', warnings: [], error, zones } }
}

/** The end of a write that depends on a send. */
export function endWith(send: EndedSend, each: EvaluatedWrite, isDone: boolean): WriteEnd {
  const { outcome, base } = send
  const { write } = each
  const { id } = write
  // Where the zone differs from the intended one, the zones that were read replace those of the intent.
  const zones = outcome.kind === 'differs' ? { before: base, after: outcome.zone } : undefined
  if (isDone) {
    const verified = outcome.kind !== 'written' || outcome.verified
    const warnings = verified ? each.warnings : [...each.warnings, notVerified]
    const zone = 'zone' in outcome ? outcome.zone : undefined
    return {
      write,
      outcome: { id, status: 'confirmed', verified, warnings, zones },
      result: (more) => resultOf({ ...each, warnings: [...warnings, ...more] }, zone, verified),
    }
  }
  if (outcome.kind === 'written') return unsent(each, outcome.zone)
  const { error, kind } = outcome
  if (kind === 'unsent' || !isChange(each)) return failed(write, error)
  if (kind === 'refused') return refused(write, error, base)
  const { warnings } = each
  return {
    write,
    outcome: { id, status: 'unconfirmed', verified: false, warnings, zones, error },
  }
}

function sendOutcome(send: EndedSend, ends: WriteEnd[]): SendOutcome {
  const { outcome, repair } = send
  const repaired = repair ? [endWith(send, repair, outcome.kind === 'written')] : []
  return {
    state: stateOf(outcome, ends),
    // A repair that was not seen to work is tried again: only the outdated zone itself triggers it.
    releaseRepairs: ['unsent', 'unknown', 'refused'].includes(outcome.kind),
    found: 'zone' in outcome && outcome.kind !== 'refused' ? outcome.zone : undefined,
    unanswered: outcome.unanswered,
    changes: [...repaired, ...ends].map((end) => end.outcome),
  }
}

function stateOf(outcome: WriteOutcome, ends: WriteEnd[]): SendOutcome['state'] {
  if (outcome.kind === 'written') return outcome.verified ? 'settled' : 'unverified'
  if (outcome.kind !== 'differs') return outcome.kind
  const isDone = (end: WriteEnd) => !end.outcome.isUnsent && end.outcome.status === 'confirmed'
  return ends.some(isDone) ? 'settled' : 'closed'
}
