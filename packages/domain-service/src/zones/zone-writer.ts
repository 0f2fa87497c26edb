import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { HttpError, type Logger } from '@domains-and-files/http'
import type { Domain } from '../dns/domain-name.ts'
import type { Zone } from '../dns/record.ts'
import { tooManyWaiting } from '../errors.ts'
import type { ChangeHistory } from '../ledger/change-history.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import { type Cached, ResponseCache } from '../registrar/response-cache.ts'
import { LateWriteGuard } from './late-write-guard.ts'
import { type WriteOutcome, writeVerified } from './verified-write.ts'
import {
  type EvaluatedWrite,
  evaluateWrite,
  findDone,
  nothing,
  type QueuedWrite,
  rejectAll,
  settle,
  type WriteResult,
  type ZoneWrite,
} from './write-batch.ts'

interface Parts {
  registrar: RegistrarClient
  journal: ChangeHistory
  cacheTtl: number
  /** Milliseconds after which a call of the registrar is given up. */
  timeout: number
  verify: boolean
  log: Logger
}

/** Writes that may wait for one domain; whoever comes then is sent away at once, before memory is short. */
const longestQueue = 1_000

/**
 * The zones of all domains: reads through a cache, and writes that lose nothing. Writes to one domain are taken
 * together in rounds, one round at a time: a fresh read, each request worked out in its order, one write, one read back.
 */
export class ZoneWriter {
  readonly #parts: Parts
  readonly #cache: ResponseCache<Zone>
  readonly #queues = new Map<string, QueuedWrite[]>()
  readonly #rounds = new Set<Promise<void>>()
  readonly #lastKnown: LateWriteGuard

  constructor(parts: Parts) {
    this.#parts = parts
    this.#cache = new ResponseCache(parts.registrar.cacheOptions(parts.cacheTtl))
    this.#lastKnown = new LateWriteGuard({
      timeout: parts.timeout,
      check: (domain) => this.write(domain, nothing),
    })
  }

  /** A zone as of at most the cache's time ago, or of now where `fresh`. */
  read(domain: Domain, fresh: boolean): Promise<Cached<Zone>> {
    return this.#cache.read(domain.name, () => this.#parts.registrar.zone(domain, 'read'), {
      fresh,
      mayBeStale: isPassing,
    })
  }

  /** Changes a zone by the one safe way; resolves when the change is confirmed, or was a dry run. */
  write(domain: Domain, request: ZoneWrite): Promise<WriteResult> {
    const queue = this.#queues.get(domain.name)
    if (queue && queue.length >= longestQueue) return Promise.reject(tooManyWaiting())
    const { promise, resolve, reject } = Promise.withResolvers<WriteResult>()
    const waiting = { request, resolve, reject }
    if (queue) queue.push(waiting)
    else {
      this.#queues.set(domain.name, [waiting])
      const rounds = this.#run(domain).finally(() => this.#rounds.delete(rounds))
      this.#rounds.add(rounds)
    }
    return promise
  }

  /** Requests that wait for a round, over all domains. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, queue) => sum + queue.length, 0)
  }

  /** What the cache of zones had. */
  get counts() {
    return this.#cache.counts
  }

  /** Resolves when no round runs any more. */
  async settle() {
    this.#lastKnown.close()
    while (this.#rounds.size > 0) await Promise.allSettled(this.#rounds)
  }

  // Runs while there is somebody in the queue; the queue's presence in the map says that it runs.
  async #run(domain: Domain) {
    for (
      let queue = this.#queues.get(domain.name);
      queue?.length;
      queue = this.#queues.get(domain.name)
    ) {
      const zone = await this.#readFresh(domain).catch((error: unknown) => ({ error }))
      // Who came while the zone was read is taken along, and so is who comes on their heels.
      if (queue.length > 1) await gather(queue)
      const waiting = queue.splice(0)
      if ('error' in zone) for (const each of waiting) each.reject(zone.error)
      else await this.#round(domain, zone, waiting).catch((error) => rejectAll(waiting, error))
    }
    this.#queues.delete(domain.name)
  }

  // A zone that is not as it was left is read twice: the registrar may have given an old answer.
  async #readFresh(domain: Domain): Promise<Zone> {
    const zone = await this.#parts.registrar.zone(domain, 'write')
    return this.#lastKnown.isNew(domain, zone) ? this.#parts.registrar.zone(domain, 'write') : zone
  }

  async #round(domain: Domain, zone: Zone, waiting: QueuedWrite[]) {
    const judged: EvaluatedWrite[] = []
    const base = this.#lastKnown.restore(domain, zone)
    if (base !== zone) {
      this.#parts.log.error(
        { domain: domain.name },
        'later changes undone by a late write: restored',
      )
    }
    let current = base
    for (const each of waiting) {
      const result = evaluateWrite(each, current)
      if (!each.request.dryRun) current = result.after
      judged.push(result)
    }
    if (current === zone) {
      this.#cache.put(domain.name, zone)
      for (const each of judged) settle(each)
      return
    }

    this.#cache.drop(domain.name)
    let mayComeLate = false
    const outcome = await writeVerified({
      ...this.#parts,
      domain,
      before: zone,
      after: current,
      onGivenUp: () => {
        mayComeLate = true
        this.#lastKnown.expectLate(domain, current)
      },
    })
    // Sent twice, given up once, refused once: who is told that it was refused must not find it done later.
    if (outcome.kind === 'refused' && mayComeLate) this.#lastKnown.put(domain, base)
    const isChange = (each: EvaluatedWrite) =>
      each.after !== each.before && !each.waiting.request.dryRun
    const first = base === zone ? judged.findIndex(isChange) : 0
    // What was judged before the first change does not depend on the write.
    for (const each of judged.slice(0, first)) settle(each)
    const dependent = judged.slice(first)
    if (outcome.kind === 'refused' && dependent.length > 1 && isAboutContent(outcome.error)) {
      await this.#separate(domain, zone, dependent)
      return
    }
    this.#finish(domain, dependent, outcome)
  }

  // The registrar refused what several requests came to: each half by itself, so that only the one at fault fails.
  async #separate(domain: Domain, zone: Zone, judged: EvaluatedWrite[]) {
    const waiting = judged.map((each) => each.waiting)
    const middle = Math.ceil(waiting.length / 2)
    await this.#round(domain, zone, waiting.slice(0, middle))
    const rest = waiting.slice(middle)
    try {
      await this.#round(domain, await this.#readFresh(domain), rest)
    } catch (error) {
      rejectAll(rest, error)
    }
  }

  #finish(domain: Domain, judged: EvaluatedWrite[], outcome: WriteOutcome) {
    this.#cache.drop(domain.name)
    if (outcome.kind === 'written') this.#cache.put(domain.name, outcome.zone)
    else if (outcome.kind !== 'refused') this.#tellDoubt(domain, judged, outcome.error)
    // What a late write has put there is no sign that anything was done.
    const isLate = outcome.kind === 'differs' && this.#lastKnown.isLate(domain, outcome.zone)
    const done = isLate ? [] : findDone(judged, outcome)
    if (outcome.kind === 'written' || (outcome.kind === 'differs' && done.length > 0)) {
      this.#lastKnown.put(domain, outcome.zone)
    }
    this.#record(domain, done)
    for (const each of judged) {
      if (outcome.kind === 'written' || done.includes(each)) settle(each, outcome)
      else each.waiting.reject(outcome.error)
    }
  }

  // It is in no history, since nobody knows whether it happened: whoever looks finds here what was meant.
  #tellDoubt(domain: Domain, judged: EvaluatedWrite[], error: HttpError) {
    const meant = judged.flatMap(({ waiting: { request }, written }) =>
      written
        ? {
            by: request.by,
            request_id: request.requestId,
            added: written.added,
            removed: written.removed,
          }
        : [],
    )
    this.#parts.log.error(
      { domain: domain.name, detail: error.message, meant },
      'write not confirmed',
    )
  }

  #record(domain: Domain, done: EvaluatedWrite[]) {
    const entries = done.flatMap(({ waiting: { request }, before, after, written }) =>
      written && after !== before
        ? {
            domain: domain.name,
            by: request.by,
            requestId: request.requestId,
            ...written,
            before,
            after,
          }
        : [],
    )
    try {
      this.#parts.journal.append(entries)
    } catch (error) {
      // The zone is written: to call that a failure would make the caller write again.
      this.#parts.log.error({ err: error, domain: domain.name }, 'history not written')
      for (const each of done)
        each.written?.warnings.push('the change is made, but could not be kept in the history')
    }
    for (const { by, requestId, added, removed } of entries) {
      const facts = {
        domain: domain.name,
        by,
        request_id: requestId,
        added: added.length,
        removed: removed.length,
      }
      this.#parts.log.info(facts, 'zone written')
    }
  }
}

/** Whether a failure is the registrar's passing one, so that an older answer serves better than none. */
export const isPassing = (error: unknown) =>
  error instanceof HttpError && error.status >= 500 && error.code.startsWith('registrar_')

const isAboutContent = (error: HttpError) =>
  ['registrar_rejected', 'too_many_records'].includes(error.code)

// Calls are dearer than time: a crowd is waited for until it has been quiet for a moment.
async function gather(queue: QueuedWrite[]) {
  const latest = performance.now() + 250
  for (let seen = 0; queue.length > seen && performance.now() < latest; ) {
    seen = queue.length
    await sleep(20)
    await turn() // What lies ready at the sockets after a busy moment is read before the queue is looked at.
  }
}
