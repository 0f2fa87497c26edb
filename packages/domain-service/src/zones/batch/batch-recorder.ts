import type { HttpError, Logger } from '@domains-and-files/http'
import { slices } from '../../clock.ts'
import type { Zone } from '../../dns/record.ts'
import { changeSuperseded, zoneKeepsChanging } from '../../errors.ts'
import type { ChangeOutcome, Ledger, SendOutcome, Warning } from '../../ledger/ledger.ts'
import {
  isDatabaseAway,
  type QueuedWrite,
  toStoredProblem,
  type WriteResult,
} from '../zone-write.ts'
import { type EvaluatedWrite, isChange, resultOf } from './evaluate-write.ts'
import type { Refusal } from './separate.ts'
import type { WriteOutcome } from './verified-write.ts'

interface Options {
  ledger: Ledger
  log: Logger
}

const notRecorded = 'the change is made, but its outcome could not be recorded in the history'

/** How long a database that was away is not tried again: one attempt may take its whole time limit. */
const awayMs = 1_000

/**
 * Records how the writes of a batch ended, and then answers them. What a database that is away does not record is
 * resolved by a later batch.
 */
export class BatchRecorder {
  readonly #ledger: Ledger
  readonly #log: Logger
  #awayAt = Number.NEGATIVE_INFINITY
  /** Writes of which nothing was done. */
  readonly undone = new Set<QueuedWrite>()

  constructor({ ledger, log }: Options) {
    this.#ledger = ledger
    this.#log = log
  }

  /** A write that needed no send: it changes nothing, or it failed by itself. */
  async endUnsent(each: EvaluatedWrite, zone?: Zone): Promise<void> {
    const { write, error, before, after, warnings } = each
    if (error !== undefined) return this.fail(write, error)
    await this.#record(write, () =>
      this.#ledger.endUnsent(write, { effect: { before, after, warnings } }),
    )
    write.resolve(resultOf(each, { zone }))
  }

  /** A write of which nothing was done. An asynchronous one waits again if the failure may pass. */
  async fail(write: QueuedWrite, error: unknown): Promise<void> {
    this.undone.add(write)
    if (isDatabaseAway(error)) this.#awayAt = performance.now()
    const problem = toStoredProblem(error)
    await this.#record(write, () =>
      write.isAsync && problem.status >= 500
        ? this.#ledger.requeue(write)
        : this.#ledger.endUnsent(write, { problem }),
    )
    write.reject(error)
  }

  /** A later write has made this one pointless. */
  async supersede(write: QueuedWrite): Promise<void> {
    await this.#record(write, () => this.#ledger.endUnsent(write, { cancelled: 'superseded' }))
    write.reject(changeSuperseded(write.id))
  }

  /** The registrar refused what this write contains. */
  async refuse(
    write: QueuedWrite,
    { error, zone }: Pick<Refusal, 'error' | 'zone'>,
  ): Promise<void> {
    if (write.isAsync && error.status >= 500) return this.fail(write, error)
    this.undone.add(write)
    await this.#record(write, () =>
      this.#ledger.endChange(zone.domain, refusedChange(write.id, error, zone)),
    )
    write.reject(error)
  }

  /** Ends a send and answers the writes of its batch. `done` are those that it carried out. */
  async end(send: EndedSend, outcome: WriteOutcome, done: EvaluatedWrite[]): Promise<void> {
    const isRecorded = await this.recordEnd(send, outcome, done)
    const unverified = outcome.kind === 'written' && !outcome.verified
    const zone = 'zone' in outcome ? outcome.zone : undefined
    const warnings = [...(unverified ? [notVerified] : []), ...(isRecorded ? [] : [notRecorded])]
    if (outcome.kind === 'differs' || outcome.kind === 'unknown')
      this.#logDoubt(send, outcome.error)
    const isDone = new Set(done)
    const nextSlice = slices()
    for (const each of send.evaluated) {
      await nextSlice() // Each answer may have 400 KB.
      if (isDone.has(each)) {
        const result = resultOf(each, { zone, verified: !unverified, warnings })
        this.#log.info(factsOf(each, result), 'zone written')
        each.write.resolve(result)
      } else if (outcome.kind === 'written') await this.endUnsent(each, zone)
      else if (outcome.kind === 'refused' && isChange(each)) {
        await this.refuse(each.write, { error: outcome.error, zone: send.base })
      } else if (outcome.kind === 'unsent' || !isChange(each)) {
        await this.fail(each.write, 'error' in outcome ? outcome.error : undefined)
      } else each.write.reject('error' in outcome ? outcome.error : undefined)
    }
  }

  /** @returns false where the ledger failed: the send stays open, and is resolved by reading the zone later. */
  async recordEnd(
    send: EndedSend,
    outcome: WriteOutcome,
    done: EvaluatedWrite[],
  ): Promise<boolean> {
    const [first] = send.evaluated
    return this.#record(first?.write, () =>
      this.#ledger.endSend(send.id, sendOutcome(send, outcome, done)),
    )
  }

  // The registrar's zone is as it is: a failing ledger must not turn a done write into a failed one.
  async #record(write: QueuedWrite | undefined, run: () => Promise<unknown>): Promise<boolean> {
    if (performance.now() - this.#awayAt < awayMs) return false
    try {
      await run()
      return true
    } catch (error) {
      if (isDatabaseAway(error)) this.#awayAt = performance.now()
      this.#log.error({ err: error, domain: write?.request.domain }, 'outcome not recorded')
      return false
    }
  }

  #logDoubt({ base, evaluated }: EndedSend, error: HttpError) {
    const changes = evaluated.filter(isChange).map((each) => factsOf(each, resultOf(each)))
    const { message: detail } = error
    this.#log.error({ domain: base.domain, detail, changes }, 'write not confirmed')
  }
}

function factsOf({ write: { request, id } }: EvaluatedWrite, { added, removed }: WriteResult) {
  return {
    domain: request.domain,
    change: id,
    by: request.by,
    request_id: request.requestId,
    added: added.length,
    removed: removed.length,
  }
}

/** The warning of a write that is done, but not read back yet. */
export const notVerified = 'the registrar reported success, but the zone could not be read back yet'

/** One setHosts that has ended: what it was based on, and the writes of its batch. */
export interface EndedSend {
  id: number
  /** The zone as it was read before. */
  base: Zone
  /** The change by which the service repaired a late write. */
  repairId: number | undefined
  evaluated: EvaluatedWrite[]
}

/** What the ledger records of a send. `done` are the writes that it carried out. */
export function sendOutcome(
  send: EndedSend,
  outcome: WriteOutcome,
  done: EvaluatedWrite[],
): SendOutcome {
  const changes = send.evaluated.filter(isChange).flatMap((each) => {
    const { write, warnings } = each
    return changeOutcome({ id: write.id, warnings, isDone: done.includes(each) }, send, outcome)
  })
  const found = 'zone' in outcome && outcome.kind !== 'refused' ? outcome.zone : undefined
  const state = stateOf(outcome, done.length > 0)
  return {
    state,
    // A repair that was not seen to work is tried again: only the outdated zone itself triggers it.
    releaseRepairs: state === 'unsent' || state === 'unknown' || state === 'refused',
    found,
    unanswered: outcome.unanswered,
    changes: [...repairOutcome(send, outcome), ...changes],
  }
}

// A repair that was not sent or not accepted is refused until another send of the batch carries it.
function repairOutcome(send: EndedSend, outcome: WriteOutcome): ChangeOutcome[] {
  const id = send.repairId
  if (id === undefined) return []
  const isDone = outcome.kind === 'written'
  const [known] = changeOutcome({ id, warnings: [], isDone }, send, outcome)
  if (known) return [known]
  const problem = toStoredProblem('error' in outcome ? outcome.error : zoneKeepsChanging())
  return [{ id, status: 'refused', verified: true, warnings: [], problem }]
}

function stateOf(outcome: WriteOutcome, hasDone: boolean): SendOutcome['state'] {
  if (outcome.kind === 'written') return outcome.verified ? 'settled' : 'unverified'
  if (outcome.kind === 'differs') return hasDone ? 'settled' : 'closed'
  if (outcome.kind === 'refused' || outcome.kind === 'unknown') return outcome.kind
  return 'unsent'
}

function changeOutcome(
  { id, warnings, isDone }: { id: number; warnings: Warning[]; isDone: boolean },
  { base }: EndedSend,
  outcome: WriteOutcome,
): ChangeOutcome[] {
  // The zones of the intent hold where the batch came out as intended; else those that really were.
  const zones = outcome.kind === 'differs' ? { before: base, after: outcome.zone } : undefined
  if (isDone) {
    const verified = outcome.kind !== 'written' || outcome.verified
    const added = verified ? [] : [notVerified]
    return [{ id, status: 'confirmed', verified, warnings: [...warnings, ...added], zones }]
  }
  if (outcome.kind !== 'differs' && outcome.kind !== 'unknown') return []
  const problem = toStoredProblem(outcome.error)
  return [{ id, status: 'unconfirmed', verified: false, warnings, zones, problem }]
}

/** A change that the registrar refused: the zone stayed as it was. */
export const refusedChange = (id: number, error: HttpError, zone: Zone): ChangeOutcome => ({
  id,
  status: 'refused',
  verified: true,
  warnings: [],
  problem: toStoredProblem(error),
  zones: { before: zone, after: zone },
})
