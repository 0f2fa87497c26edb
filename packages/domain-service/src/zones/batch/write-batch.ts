import type { HttpError, Logger } from '@domains-and-files/http'
import type { Clock } from '../../clock.ts'
import type { Zone } from '../../dns/record.ts'
import { emailTypeUnknown, zoneKeepsChanging } from '../../errors.ts'
import type { LateSend, Ledger, RecentSend } from '../../ledger/ledger.ts'
import type { ResponseCache } from '../../registrar/response-cache.ts'
import type { QueuedWrite } from '../zone-write.ts'
import type { BatchCalls } from './batch-calls.ts'
import { BatchRecorder } from './batch-recorder.ts'
import { findDone, findOwners } from './batch-result.ts'
import { readCurrent } from './current-zone.ts'
import { type EvaluatedWrite, evaluateWrites, isChange } from './evaluate-write.ts'
import { findLateWrite, repairIntent } from './late-writes.ts'
import { resolveOpenSends } from './open-sends.ts'
import type { EndedSend } from './send-outcome.ts'
import { type Refusal, separate } from './separate.ts'
import { type WriteOutcome, writeVerified } from './verified-write.ts'
import { isSame } from './zone-comparison.ts'

export interface BatchParts {
  ledger: Ledger
  cache: Pick<ResponseCache<Zone>, 'put' | 'drop'>
  clock: Clock
  /** Whether a write that the registrar reports as done is read back. */
  verify: boolean
  /** Pause before the zone is read again where the answer may be outdated. */
  lookAgainMs: number
  log: Logger
  /** Only dry runs are evaluated: another process may be writing the zone, so its sends are left alone. */
  isReadOnly?: boolean
  /** Called for each late write that is repaired. */
  onLateWrite: () => void
}

/** A late write to undo, and the change that records it once it is recorded. */
interface LateRepair {
  send: LateSend
  changeId: number | undefined
}

const maxAttempts = 3

/**
 * One batch: all writes that waited for a domain, with one read, one setHosts and one read-back. It settles every write
 * that it is given; whatever it sends is in the ledger before.
 */
export class WriteBatch {
  readonly #parts: BatchParts
  readonly #calls: BatchCalls
  readonly #domain: string
  readonly #recorder: BatchRecorder
  #zone: Zone | undefined
  #recent: RecentSend[] = []
  #emailType: Promise<string | undefined> | undefined
  #late: LateRepair | undefined
  #isOpen = false
  #hasWritten = false

  constructor(parts: BatchParts, calls: BatchCalls, domain: string) {
    this.#parts = parts
    this.#calls = calls
    this.#domain = domain
    this.#recorder = new BatchRecorder(parts)
  }

  /** Whether a send has no final outcome yet, so that the zone is to be read again later. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether anything was sent. */
  get hasWritten(): boolean {
    return this.#hasWritten
  }

  /** Reads the zone and resolves what earlier sends left open. @throws where it cannot be read. */
  async read(): Promise<void> {
    const { ledger, log, clock } = this.#parts
    this.#zone = await this.#readBase()
    if (!this.#parts.isReadOnly) await resolveOpenSends({ ledger, log, now: clock.now }, this.#zone)
  }

  /** Settles writes of which nothing is done. */
  async fail(writes: QueuedWrite[], error: unknown): Promise<void> {
    for (const write of writes) await this.#recorder.fail(write, error)
  }

  /** Settles these writes. Without any, only a late write is repaired. */
  async run(writes: QueuedWrite[]): Promise<void> {
    // A batch of dry runs writes nothing, for any reason.
    const mayWrite = writes.length === 0 || writes.some(({ dryRun }) => !dryRun)
    await separate(writes, {
      attempt: (group) => this.#tryAttempt(group, mayWrite),
      refuse: (write, refusal) => this.#recorder.refuse(write, refusal),
    })
    // The repair was refused together with a write: alone it may pass.
    if (this.#late) await this.#tryAttempt([], mayWrite)
  }

  async #tryAttempt(writes: QueuedWrite[], mayWrite: boolean): Promise<Refusal | undefined> {
    try {
      return await this.#attempt(writes, mayWrite)
    } catch (error) {
      await this.fail(writes, error)
      return undefined
    }
  }

  async #attempt(writes: QueuedWrite[], mayWrite: boolean): Promise<Refusal | undefined> {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const zone = await this.#currentZone(writes.length > 0)
      if (mayWrite) await this.#findLateWrite(zone)
      const intended = this.#late ? { ...zone, ...this.#late.send.confirmed } : zone
      const { evaluated, zone: after } = evaluateWrites(writes, intended)
      if (after === zone) {
        this.#parts.cache.put(this.#domain, zone)
        for (const each of evaluated) await this.#recorder.endUnsent(each)
        return undefined
      }
      const send = await this.#startSend(zone, after, evaluated)
      const outcome = await this.#send(zone, after)
      if (outcome.kind !== 'stale') return this.#endSend(send, outcome)
      await this.#recorder.recordEnd(send, outcome, [])
      this.#zone = outcome.zone
    }
    throw zoneKeepsChanging()
  }

  // What was read or written last, or a fresh read. Only a write needs to know an email type that getHosts does not tell.
  async #currentZone(isForWrite: boolean): Promise<Zone> {
    if (!this.#zone) {
      await this.#calls.ensure(3)
      this.#zone = await this.#readBase()
    }
    if (this.#zone.emailType !== undefined || !isForWrite) return this.#zone
    // Where getInfo fails too, a write needs `email_type` in its body.
    this.#emailType ??= this.#calls.emailType().catch(() => undefined)
    this.#zone = { ...this.#zone, emailType: await this.#emailType }
    return this.#zone
  }

  async #readBase(): Promise<Zone> {
    this.#recent = await this.#parts.ledger.recentSends(this.#domain)
    return this.#readCurrent(this.#recent)
  }

  #readCurrent(recent: RecentSend[]): Promise<Zone> {
    const isLate = async (zone: Zone) =>
      (await findLateWrite(this.#parts.ledger, zone)) !== undefined
    return readCurrent({ ...this.#parts, recent, isLate }, this.#calls)
  }

  async #findLateWrite(zone: Zone): Promise<void> {
    const known = this.#late
    if (known && isSame(zone, known.send.zone)) return
    const send = await findLateWrite(this.#parts.ledger, zone)
    this.#late = send && { send, changeId: known?.changeId }
  }

  /** The intent, durable before anything is sent. @throws 503 or 507 where the ledger cannot be written. */
  async #startSend(base: Zone, zone: Zone, evaluated: EvaluatedWrite[]): Promise<EndedSend> {
    if (zone.emailType === undefined) throw emailTypeUnknown()
    const changing = evaluated.filter(isChange)
    const late = this.#late
    const repairs = late ? [repairIntent(base, late.send, late.changeId)] : []
    const { id, changeIds } = await this.#parts.ledger.startSend({
      domain: this.#domain,
      base,
      zone,
      intents: [
        ...repairs,
        ...changing.map(({ write, before, after, warnings }) => ({
          id: write.id,
          request: write.request,
          before,
          after,
          warnings,
        })),
      ],
      repairs: late ? [late.send.id] : [],
    })
    const [repairId] = changeIds.splice(0, repairs.length)
    for (const [at, { write }] of changing.entries()) write.id = changeIds[at]
    if (late) this.#reportLateWrite(late, repairId)
    return { id, base, repairId, evaluated }
  }

  #reportLateWrite(late: LateRepair, changeId: number | undefined) {
    if (late.changeId === undefined) {
      this.#parts.onLateWrite()
      const facts = { domain: this.#domain, send: late.send.id, change: changeId }
      this.#parts.log.error(facts, 'late write overwrote newer changes, restoring')
    }
    late.changeId = changeId
  }

  async #send(before: Zone, after: Zone): Promise<WriteOutcome> {
    this.#parts.cache.drop(this.#domain)
    this.#zone = undefined
    this.#hasWritten = true
    return writeVerified({
      ...this.#parts,
      domain: this.#domain,
      calls: this.#calls,
      before,
      after,
      recent: this.#recent,
      readCurrent: (recent) => this.#readCurrent(recent),
    })
  }

  async #endSend(send: EndedSend, outcome: WriteOutcome): Promise<Refusal | undefined> {
    const isUnverified = outcome.kind === 'written' && !outcome.verified
    this.#isOpen ||= outcome.unanswered > 0 || isUnverified || outcome.kind === 'unknown'
    if (outcome.kind === 'written') {
      this.#parts.cache.put(this.#domain, outcome.zone)
      // A read-back serves the next part of a divided batch.
      if (!isUnverified && this.#calls.isFresh) this.#zone = outcome.zone
    }
    // A batch tries a repair once; a refusal is no attempt.
    if (outcome.kind !== 'refused') this.#late = undefined
    const dependent = await this.#settleIndependent(send)
    if (outcome.kind === 'refused' && dependent.length > 0 && isAboutContent(outcome.error)) {
      this.#zone = send.base
      await this.#recorder.recordEnd(send, outcome, [])
      return {
        writes: dependent.map(({ write }) => write),
        named: findOwners(dependent, outcome.rows).map(({ write }) => write),
        error: outcome.error,
        zone: send.base,
      }
    }
    await this.#recorder.end(
      { ...send, evaluated: dependent },
      outcome,
      await this.#done(send, outcome),
    )
    return undefined
  }

  // What was evaluated before the first change does not depend on the send.
  async #settleIndependent({ evaluated, repairId }: EndedSend): Promise<EvaluatedWrite[]> {
    const first = repairId === undefined ? evaluated.findIndex(isChange) : 0
    for (const each of evaluated.slice(0, first)) await this.#recorder.endUnsent(each)
    return evaluated.slice(first)
  }

  async #done({ evaluated }: EndedSend, outcome: WriteOutcome): Promise<EvaluatedWrite[]> {
    if (outcome.kind !== 'differs') return findDone(evaluated, outcome)
    // A zone that a late write left proves nothing about this one.
    const isLate = await findLateWrite(this.#parts.ledger, outcome.zone)
    return isLate ? [] : findDone(evaluated, outcome)
  }
}

/** Whether the registrar refused what was sent, so that other writes of the batch may pass without it. */
const isAboutContent = (error: HttpError) =>
  ['registrar_rejected', 'too_many_records'].includes(error.code)
