import { databaseProblem, delay, HttpError } from '@domains-and-files/http'
import type { Zone } from '../../dns/zone.ts'
import { ledgerUnavailable, zoneKeepsChanging } from '../../errors.ts'
import type { DomainSends, EvaluatedWrite, QueuedChange } from '../../ledger/ledger.ts'
import {
  type BatchOptions,
  BatchRecorder,
  type EndedSend,
  endWith,
  failed,
  refused,
  superseded,
  unsent,
} from './batch-recorder.ts'
import { findLateWrite, findRepair, type LateRepair, readCurrent } from './current-zone.ts'
import { checkRights, evaluateWrites, findDone, findOwners, isChange, takeSuperseded } from './evaluate-write.ts'
import { resolveOpenSend } from './open-sends.ts'
import { RegistrarZone } from './registrar-zone.ts'
import { type Attempt, isAboutContent, separate } from './separate.ts'

/** One setHosts to be. */
interface Plan {
  base: Zone
  zone: Zone
  evaluated: EvaluatedWrite[]
  sends: DomainSends
}

/** How long a batch without waiting clients may delay one with waiting clients. */
const maxBackgroundWaitMs = 2_000
const maxAttempts = 3
/** Writes that were refused with the first of a batch come back within this time: their Retry-After is whole seconds. */
const returnMs = 1_500

/**
 * One batch: all writes that waited for a domain, with one read, one setHosts and one read-back. It settles every write
 * that it takes; whatever it sends is in the ledger before, and what became of it is there before a client is answered.
 */
export class Batch {
  readonly #options: BatchOptions
  readonly #domain: string
  readonly #registrar: RegistrarZone
  readonly #recorder: BatchRecorder
  #zone: Zone | undefined
  /** Of the zone, for the cache. */
  #version = 0
  /** The sends of the domain; undefined where a send has ended since they were read. */
  #sends: DomainSends | undefined
  #emailType: Promise<string | undefined> | undefined
  #late: LateRepair | undefined
  /** Asynchronous writes that are not sent, each with the later writes that undo it. */
  readonly #superseded = new Map<QueuedChange, QueuedChange[]>()
  /** Why a send never left this service. */
  #unsent: HttpError | undefined

  constructor(options: BatchOptions) {
    this.#options = options
    this.#domain = options.domain.name
    this.#registrar = new RegistrarZone(options)
    this.#recorder = new BatchRecorder(options)
  }

  /**
   * Carries out these writes, and those that are queued meanwhile, in the order in which they were accepted; without any
   * it only reads the zone, resolves its open sends and repairs a late write.
   * @returns undefined where no slots came free: writes with a waiting client were refused, the others stay queued. Else
   * why the ledger lacks an outcome, if it does.
   * @throws where the zone could not be read, or the ledger not be written.
   */
  async run(writes: QueuedChange[]): Promise<{ failure: unknown } | undefined> {
    try {
      using _registrar = this.#registrar
      if (!(await this.#reserve(writes))) return undefined
      await this.#read()
      const pulledTo = await this.#options.queue.gather(writes)
      const taken = writes.splice(0).filter(({ id }) => id <= pulledTo)
      await this.#settle(await this.#recheck(taken))
      return this.#recorder
    } catch (error) {
      // An internal fault must not end the process, nor leave a client without an answer.
      if (!(error instanceof HttpError || databaseProblem(error)))
        this.#options.log.error({ err: error, domain: this.#domain }, 'batch failed')
      await this.#recorder.end(writes.splice(0).map((write) => failed(write, error)))
      throw error
    }
  }

  async #reserve(writes: QueuedChange[]): Promise<boolean> {
    const awaited = writes.filter(({ isAsync }) => !isAsync)
    const authors = awaited.map(({ request }) => request.callerId ?? request.by)
    const callers = [...new Set([...authors, ...this.#options.callers])]
    const priority = writes.length === 0 ? ('background' as const) : ('queued' as const)
    const background = { priority, maxWaitMs: maxBackgroundWaitMs }
    try {
      // Read, write, read-back.
      await this.#registrar.ensure(3, callers.length > 0 ? { callers, domain: this.#domain } : background)
      if (this.#registrar.callers.length > callers.length) await delay(this.#options.clock, returnMs)
      return true
    } catch (error) {
      if (callers.length === 0) await delay(this.#options.clock, maxBackgroundWaitMs / 4)
      await this.#recorder.end(awaited.map((write) => failed(write, error)))
      return false
    }
  }

  // Resolves what earlier sends left open. Where that cannot be recorded, nothing could be sent either.
  async #read(): Promise<void> {
    const { ledger, replicas } = this.#options
    if (replicas) this.#version = await ledger.zoneVersion(this.#domain)
    this.#sends = await ledger.sendsOf(this.#domain)
    const { open } = this.#sends
    const zone = await readCurrent(this.#registrar, this.#sends)
    this.#zone = zone
    if (open.length > 0) this.#sends = undefined
    for (const send of open) await resolveOpenSend(send, zone, this.#options)
  }

  /** Looks up each author once. @returns the writes whose authors may still write. */
  async #recheck(writes: QueuedChange[]): Promise<QueuedChange[]> {
    const callers = new Map<string, ReturnType<BatchOptions['findCaller']>>()
    const findOnce = (id: string) => callers.getOrInsertComputed(id, this.#options.findCaller)
    const checks = writes.map((write) =>
      checkRights(write.request, findOnce).catch((error: unknown) => failed(write, error)),
    )
    const ends = (await Promise.all(checks)).filter((end) => typeof end === 'object')
    await this.#recorder.end(ends)
    return writes.filter((write) => !ends.some((end) => end.write === write))
  }

  /** Settles these writes. Without any, only a late write is repaired. */
  async #settle(writes: QueuedChange[]): Promise<void> {
    const first = await this.#attempt(writes)
    if (typeof first === 'object')
      await separate(first, {
        attempt: (group) => this.#attempt(group),
        refuse: (write, { error, zone }) => this.#recorder.end([refused(write, error, zone)]),
      })
    // The repair was refused together with a write: alone it may pass.
    if (this.#late) await this.#attempt([])
    // A superseded write whose later writes all failed waits for the next batch.
    for (const [write, later] of this.#superseded) {
      const isPointless = later.some((each) => !this.#recorder.undone.has(each))
      await this.#recorder.end([isPointless ? superseded(write) : failed(write, zoneKeepsChanging())])
    }
  }

  async #attempt(group: QueuedChange[]): Promise<Attempt> {
    let writes = group
    try {
      // An asynchronous write that could not be sent stays queued, and a later one must not overtake it.
      if (this.#unsent) throw this.#unsent
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        const plan = await this.#plan(writes)
        writes = plan.evaluated.flatMap(({ write }) => (write.request.reason ? [] : write))
        if (plan.zone === plan.base) {
          this.#options.cache.put(this.#domain, plan.base, this.#version)
          await this.#recorder.end(plan.evaluated.map((each) => unsent(each)))
          return 'done'
        }
        const { send, gone } = await this.#send(plan)
        const { outcome } = send ?? {}
        if (!send) writes = writes.filter(({ id }) => !gone.has(id))
        else if (outcome?.state === 'unsent' && outcome.retry && attempt < maxAttempts) {
          // The next attempt may find nothing to repair.
          const repairs = plan.evaluated.filter(({ write }) => write.request.reason)
          const ends = repairs.map((each) => endWith(send, each))
          await this.#recorder.end(ends, send)
          this.#zone = outcome.retry.zone
        } else return await this.#endSend(send, plan.evaluated)
      }
      throw zoneKeepsChanging()
    } catch (error) {
      await this.#recorder.end(writes.map((write) => failed(write, error)))
      return 'failed'
    }
  }

  async #plan(writes: QueuedChange[]): Promise<Plan> {
    const base = await this.#currentZone(writes.length > 0)
    const sends = this.#sends ?? (await this.#options.ledger.sendsOf(this.#domain))
    this.#sends = sends
    if (this.#late || sends.late.length > 0) this.#late = findRepair(base, sends.late, this.#late)
    const wanted = this.#late ? [this.#late.write, ...writes] : writes
    const left = writes.some(({ isAsync }) => isAsync) ? await takeSuperseded(wanted, base, this.#superseded) : wanted
    const { evaluated, zone } = await evaluateWrites(left, base)
    const repair = this.#late && evaluated[0]
    // The registrar accepts none of the records that the late write removed.
    if (repair && !isChange(repair)) {
      this.#late = undefined
      evaluated.shift()
    }
    return { base, sends, evaluated, zone }
  }

  // The zone read or written last, or a fresh read. Only a write needs getInfo for an email type that getHosts leaves out.
  async #currentZone(isForWrite: boolean): Promise<Zone> {
    if (!this.#zone) {
      await this.#registrar.ensure(3)
      this.#sends = await this.#options.ledger.sendsOf(this.#domain)
      this.#zone = await readCurrent(this.#registrar, this.#sends)
    }
    if (this.#zone.emailType !== undefined || !isForWrite) return this.#zone
    // Where getInfo fails too, a write needs `email_type` in its body.
    this.#emailType ??= this.#registrar.emailType().catch(() => undefined)
    this.#zone = { ...this.#zone, emailType: await this.#emailType }
    return this.#zone
  }

  /**
   * Records the intent, durable before anything is sent, and sends the zone. Without `send` nothing was sent, since writes
   * are not queued any more: those that are `gone`.
   * @throws 503 or 507 where the ledger cannot be written.
   */
  async #send({ base, zone, evaluated, sends }: Plan) {
    const { ledger, log, counts, cache } = this.#options
    const late = this.#late
    const intents = evaluated.filter(isChange)
    const repairs = late ? [late.send.id] : []
    const { id, gone, changeIds } = await ledger.startSend({ base, zone, intents, repairs })
    if (id === 0) {
      const left = evaluated.filter(({ write }) => gone.has(write.id))
      const error = ledgerUnavailable(undefined)
      await this.#recorder.end(left.map(({ write }) => failed(write, error)))
      return { gone }
    }
    if (late?.write.id === 0) {
      late.write.id = changeIds[0] ?? 0
      counts.lateWrites++
      const facts = { domain: this.#domain, send: late.send.id, change: late.write.id }
      log.error(facts, 'late write overwrote newer changes, restoring')
    }
    cache.drop(this.#domain)
    this.#zone = undefined
    this.#sends = undefined
    // Of the send that is repaired, another transmission may be unanswered.
    const stillLate = sends.late.filter((each) => !repairs.includes(each.id) || each.unanswered > 1)
    const outcome = await this.#registrar.write({ before: base, after: zone, sends: { ...sends, late: stillLate } })
    // A zone that a late write left proves nothing about this send.
    const isLate = outcome.state === 'closed' && findLateWrite(stillLate, outcome.found)
    const done = new Set(isLate ? [] : findDone(evaluated, outcome))
    return { send: { id, base, outcome, done }, gone }
  }

  async #endSend(send: EndedSend, evaluated: EvaluatedWrite[]): Promise<Attempt> {
    const { outcome, base } = send
    const { log } = this.#options
    const { state, error } = outcome
    // What was evaluated before the first change does not depend on the send.
    const first = evaluated.findIndex(isChange)
    const [independent, dependent] = [evaluated.slice(0, first), evaluated.slice(first)]
    const { repairs = [], others = [] } = Object.groupBy(dependent, ({ write }) =>
      write.request.reason ? 'repairs' : 'others',
    )
    const isDivided = state === 'refused' && others.length > 0 && isAboutContent(outcome.error)
    const ends = [
      ...independent.map((each) => unsent(each)),
      ...(isDivided ? repairs : dependent).map((each) => endWith(send, each)),
    ]
    if (state === 'closed' || state === 'unknown') {
      const changes = evaluated.filter(isChange).map(({ write }) => write.id)
      log.error({ domain: this.#domain, detail: error?.message, changes }, 'write not confirmed')
    }
    // A batch tries a repair once; a refusal is no attempt.
    if (state !== 'refused') this.#late = undefined
    if (state === 'unsent') this.#unsent = error
    this.#version = (await this.#recorder.end(ends, send)) ?? 0
    // A read-back serves the next part of a divided batch.
    if (state === 'settled' && this.#registrar.isFresh) this.#zone = outcome.found
    if (!isDivided) return error ? 'failed' : 'done'
    this.#zone = outcome.shown
    return {
      writes: others.map(({ write }) => write),
      named: findOwners(others, outcome.rows).map(({ write }) => write),
      error: outcome.error,
      zone: base,
    }
  }
}
