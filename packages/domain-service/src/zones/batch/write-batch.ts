import type { Caller } from '@domains-and-files/auth'
import type { Clock, HttpError, Logger } from '@domains-and-files/http'
import type { Zone } from '../../dns/zone.ts'
import { emailTypeUnknown, ledgerUnavailable, zoneKeepsChanging } from '../../errors.ts'
import {
  type EvaluatedWrite,
  effectOf,
  isDatabaseAway,
  type LateSend,
  type Ledger,
  type QueuedChange,
  type RecentSend,
  type StartedSend,
} from '../../ledger/ledger.ts'
import type { RegistrarClient } from '../../registrar/client.ts'
import type { ResponseCache } from '../../registrar/response-cache.ts'
import {
  type BatchRecorder,
  type EndedSend,
  endWith,
  failed,
  refused,
  superseded,
  unsent,
} from './batch-recorder.ts'
import {
  type BatchCalls,
  findLateWrite,
  isSame,
  readCurrent,
  repairRequest,
} from './current-zone.ts'
import { evaluateWrites, findDone, findOwners, isChange, takeSuperseded } from './evaluate-write.ts'
import { resolveOpenSend } from './open-sends.ts'
import { type Attempt, separate } from './separate.ts'
import { type WriteOutcome, writeVerified } from './verified-write.ts'

export interface BatchDependencies {
  registrar: RegistrarClient
  ledger: Ledger
  /** The caller with this id, with its present rights; undefined if it is gone. */
  findCaller: (id: string) => Promise<Caller | undefined>
  cache: Pick<ResponseCache<Zone>, 'put' | 'drop'>
  clock: Clock
  /** Whether a write that the registrar reports as done is read back. */
  verify: boolean
  log: Logger
  counts: {
    /** Late writes that were repaired. */
    lateWrites: number
  }
}

/** A late write to undo, by a change of the service itself; its id is 0 until the ledger has it. */
interface LateRepair {
  send: LateSend
  write: QueuedChange
}

const maxAttempts = 3

/**
 * One batch: all writes that waited for a domain, with one read, one setHosts and one read-back. It settles every write
 * that it is given; whatever it sends is in the ledger before.
 */
export class WriteBatch {
  readonly #dependencies: BatchDependencies
  readonly #calls: BatchCalls
  readonly #domain: string
  readonly #recorder: BatchRecorder
  #zone: Zone | undefined
  /** The version of the zone, for the cache. */
  #version = 0
  #recent: RecentSend[] = []
  #emailType: Promise<string | undefined> | undefined
  #late: LateRepair | undefined
  /** Asynchronous writes that are not sent, each with the later writes that undo it. */
  readonly #superseded = new Map<QueuedChange, QueuedChange[]>()
  /** Why a send never left this service. */
  #unsent: HttpError | undefined

  constructor(
    dependencies: BatchDependencies,
    { calls, recorder, domain }: { calls: BatchCalls; recorder: BatchRecorder; domain: string },
  ) {
    this.#dependencies = dependencies
    this.#calls = calls
    this.#recorder = recorder
    this.#domain = domain
  }

  /**
   * Reads the zone and resolves what earlier sends left open; a failing disk leaves them open for the next batch.
   * @throws where the zone cannot be read, or the database of the replicas is away: nothing could be sent either.
   */
  async read(): Promise<void> {
    const { ledger, log } = this.#dependencies
    this.#version = await ledger.zoneVersion(this.#domain)
    const zone = await this.#readCurrent()
    this.#zone = zone
    try {
      for (const send of await ledger.openSends(this.#domain))
        await resolveOpenSend(send, zone, this.#dependencies)
    } catch (error) {
      if (isDatabaseAway(error)) throw error
      log.error({ err: error, domain: this.#domain }, 'open writes not resolved')
      this.#recorder.fail(error)
    }
  }

  /** Settles these writes. Without any, only a late write is repaired. */
  async run(writes: QueuedChange[]): Promise<void> {
    const first = await this.#tryAttempt(writes)
    if (typeof first === 'object')
      await separate(first, {
        attempt: (group) => this.#tryAttempt(group),
        refuse: (write, { error, zone }) => this.#recorder.end([refused(write, error, zone)]),
      })
    // The repair was refused together with a write: alone it may pass.
    if (this.#late) await this.#tryAttempt([])
    // A superseded write whose later writes all failed waits for the next batch.
    for (const [write, later] of this.#superseded) {
      const isPointless = later.some((each) => !this.#recorder.undone.has(each))
      const end = isPointless ? superseded(write) : failed(write, zoneKeepsChanging())
      await this.#recorder.end([end])
    }
  }

  async #tryAttempt(writes: QueuedChange[]): Promise<Attempt> {
    try {
      // An asynchronous write that could not be sent stays queued, and a later one must not overtake it.
      if (this.#unsent) throw this.#unsent
      return await this.#attempt(writes)
    } catch (error) {
      const left = writes.filter((write) => !this.#superseded.has(write))
      await this.#recorder.end(left.map((write) => failed(write, error)))
      return 'failed'
    }
  }

  async #attempt(group: QueuedChange[]): Promise<Attempt> {
    let writes = group
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const zone = await this.#currentZone(writes.length > 0)
      this.#late = await this.#findRepair(zone)
      const { usesRegistrarDns } = zone
      const intended = this.#late ? { ...this.#late.send.confirmed, usesRegistrarDns } : zone
      writes = await takeSuperseded(writes, intended, this.#superseded)
      const { evaluated, zone: after } = await evaluateWrites(writes, intended)
      if (after === zone) {
        this.#dependencies.cache.put(this.#domain, zone, this.#version)
        await this.#recorder.end(evaluated.map((each) => unsent(each)))
        return 'done'
      }
      const repair = this.#late && { ...effectOf(zone, intended), write: this.#late.write }
      const changing = [...(repair ? [repair] : []), ...evaluated.filter(isChange)]
      const { id, gone } = await this.#startSend(zone, after, changing)
      if (gone.size > 0) {
        const isGone = (write: QueuedChange) => gone.has(write.id)
        const ends = writes
          .filter(isGone)
          .map((write) => failed(write, ledgerUnavailable(undefined)))
        await this.#recorder.end(ends)
        writes = writes.filter((write) => !isGone(write))
        continue
      }
      const outcome = await this.#send(zone, after)
      const send = { id, base: zone, repair, evaluated, outcome }
      if (outcome.kind !== 'unsent' || !outcome.retry || attempt === maxAttempts)
        return this.#endSend(send)
      await this.#recorder.endSend(send, [])
      this.#zone = outcome.retry.zone
    }
    throw zoneKeepsChanging()
  }

  // The zone read or written last, or a fresh read. Only a write needs getInfo for an email type that getHosts leaves out.
  async #currentZone(isForWrite: boolean): Promise<Zone> {
    if (!this.#zone) {
      await this.#calls.ensure(3)
      this.#zone = await this.#readCurrent()
    }
    if (this.#zone.emailType !== undefined || !isForWrite) return this.#zone
    // Where getInfo fails too, a write needs `email_type` in its body.
    this.#emailType ??= this.#calls.emailType().catch(() => undefined)
    this.#zone = { ...this.#zone, emailType: await this.#emailType }
    return this.#zone
  }

  /** Reads the zone as the base of a write, after these sends; default: those that the ledger has. */
  async #readCurrent(after?: RecentSend[]): Promise<Zone> {
    const { ledger, clock } = this.#dependencies
    if (!after) this.#recent = await ledger.recentSends(this.#domain)
    const recent = after ?? this.#recent
    const isLate = async (zone: Zone) => (await findLateWrite(ledger, zone)) !== undefined
    return readCurrent({ clock, recent, isLate }, this.#calls)
  }

  async #findRepair(zone: Zone): Promise<LateRepair | undefined> {
    const known = this.#late
    if (known && isSame(zone, known.send.zone)) return known
    const send = await findLateWrite(this.#dependencies.ledger, zone)
    const id = known?.write.id ?? 0
    const request = send && repairRequest(this.#domain, send)
    return request && { send, write: { id, request, isAsync: false } }
  }

  /** The intent, durable before anything is sent. @throws 503 or 507 where the ledger cannot be written. */
  async #startSend(base: Zone, zone: Zone, changing: EvaluatedWrite[]): Promise<StartedSend> {
    if (zone.emailType === undefined) throw emailTypeUnknown()
    const { ledger, log, counts } = this.#dependencies
    const domain = this.#domain
    const late = this.#late
    const repairs = late ? [late.send.id] : []
    const started = await ledger.startSend({ base, zone, intents: changing, repairs })
    const [change = 0] = started.changeIds
    if (late?.write.id === 0 && change > 0) {
      late.write.id = change
      counts.lateWrites++
      const facts = { domain, send: late.send.id, change }
      log.error(facts, 'late write overwrote newer changes, restoring')
    }
    return started
  }

  async #send(before: Zone, after: Zone): Promise<WriteOutcome> {
    this.#dependencies.cache.drop(this.#domain)
    this.#zone = undefined
    return writeVerified({
      ...this.#dependencies,
      calls: this.#calls,
      before,
      after,
      recent: this.#recent,
      readCurrent: (recent) => this.#readCurrent(recent),
    })
  }

  async #endSend(send: EndedSend): Promise<Attempt> {
    const { outcome, evaluated, repair } = send
    const isUnverified = outcome.kind === 'written' && !outcome.verified
    // What was evaluated before the first change does not depend on the send.
    const first = repair ? 0 : evaluated.findIndex(isChange)
    const [independent, dependent] = [evaluated.slice(0, first), evaluated.slice(first)]
    const isDivided =
      outcome.kind === 'refused' && dependent.length > 0 && isAboutContent(outcome.error)
    // A zone that a late write left proves nothing about this send.
    const { ledger } = this.#dependencies
    const isLate = outcome.kind === 'differs' && (await findLateWrite(ledger, outcome.zone))
    const done = new Set(isLate ? [] : findDone(evaluated, outcome))
    const ends = [
      ...independent.map((each) => unsent(each)),
      ...(isDivided ? [] : dependent.map((each) => endWith(send, each, done.has(each)))),
    ]
    // A batch tries a repair once; a refusal is no attempt.
    if (outcome.kind !== 'refused') this.#late = undefined
    if (outcome.kind === 'unsent') this.#unsent = outcome.error
    const version = await this.#recorder.endSend(send, ends)
    this.#version = version ?? 0
    if (outcome.kind === 'written') {
      this.#dependencies.cache.put(this.#domain, outcome.zone, version)
      // A read-back serves the next part of a divided batch.
      if (!isUnverified && this.#calls.isFresh) this.#zone = outcome.zone
    }
    await this.#recorder.answer(ends, version !== undefined)
    if (!isDivided) return outcome.kind === 'written' ? 'done' : 'failed'
    this.#zone = outcome.zone
    return {
      writes: dependent.map(({ write }) => write),
      named: findOwners(dependent, outcome.rows).map(({ write }) => write),
      error: outcome.error,
      zone: send.base,
    }
  }
}

/** Whether the registrar refused what was sent, so that other writes of the batch may pass without it. */
const isAboutContent = (error: HttpError) =>
  ['registrar_rejected', 'too_many_records'].includes(error.code)
