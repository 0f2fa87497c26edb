import type { Caller } from '@domains-and-files/auth'
import { delay, HttpError } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import type { Domain } from '../dns/domain-name.ts'
import { applyEdit } from '../dns/edits/apply-edit.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import { changesOf, type Zone } from '../dns/zone.ts'
import { registrarBusy } from '../errors.ts'
import { type ChangeRequest, type ChangeSummary, fromStoredProblem } from '../ledger/ledger.ts'
import { CallFailed } from '../registrar/call-failed.ts'
import { visibleError } from '../routes/zone/zone-schema.ts'
import type { Dependencies } from '../storage.ts'
import { requestOf } from '../zones/write-queue.ts'

/** The author of a write, for the ledger, and its time limit. */
export interface WriteContext {
  caller: Caller
  requestId: string
  /** When the request came, on the clock; default: now. */
  startedAt?: number
  /** Counted from `startedAt`. Default: 25 s. */
  maxWaitMs?: number
  /** Whether a cached zone that shows that nothing would change will do, so that repeats cost no call. */
  unlessDone?: boolean
}

/** Call it first: work before the write counts towards the time that the client waits. */
export const contextOf = (request: FastifyRequest, { clock }: Dependencies): WriteContext => ({
  caller: request.caller,
  requestId: request.id,
  startedAt: clock.now(),
})

/** Options of a route that writes; its handler enforces the record limits of tokens. */
export const writeRoute = {
  config: { access: 'editor', enforcesRecordLimits: true },
  schema: { hide: true },
} as const

/** The parts of the service, and what writes for protocols. */
export interface IntegrationDependencies extends Dependencies {
  writer: RetryingWriter
}

/** A change that was queued. `until`: when the last client that waits for it gives up. */
type Queued = { id: number; write: ChangeRequest; until: number }

const nothing: ChangeSummary = { added: [], removed: [], kept: 0 }

/** ACME clients and routers give up after 30 s. */
export const maxWaitMs = 25_000
export const retryAfterSeconds = 15
const pollMs = 500
/** Pause between attempts that make no call; that of the circuit breaker. */
const retryMs = 5_000
/** How long a change that found no free calls claims its place after its client has gone. */
const claimMs = 600_000
const maxKnown = 1_000

/**
 * Writes for clients that cannot wait: after 25 s they get 503, the write goes on, and a repeat finds it done, or is
 * the next attempt.
 */
export class RetryingWriter {
  readonly #options: Dependencies
  /** Changes that were queued, newest first, so that repeats do not queue them again. */
  #queued: Queued[] = []

  constructor(options: Dependencies) {
    this.#options = options
  }

  /**
   * @returns what it changed.
   * @throws {HttpError} 503 registrar_busy with Retry-After while the write goes on.
   */
  async write(domain: Domain, edit: ZoneEdit, context: WriteContext): Promise<ChangeSummary> {
    const { clock } = this.#options
    const { caller, requestId, startedAt = clock.now(), unlessDone = false } = context
    const until = startedAt + (context.maxWaitMs ?? maxWaitMs)
    // These clients know no preconditions and no dry run.
    const write = requestOf(caller, { domain: domain.name, edit, force: false, requestId }, 'sync')
    const done = this.#carryOut(domain, write, { unlessDone, until })
    done.catch(() => undefined) // After the time limit nobody waits for it; the ledger has its outcome.
    const effect = await Promise.race([done, delay(clock, Math.max(0, until - clock.now()))]).catch((error) => {
      throw visibleError(error, caller)
    })
    if (effect) return effect
    throw registrarBusy(retryAfterSeconds, 'The change is not done yet')
  }

  async #carryOut(domain: Domain, write: ChangeRequest, context: Pick<WriteContext, 'unlessDone'> & { until: number }) {
    const { zones } = this.#options
    // A pending change could undo it.
    const mayBeDone = context.unlessDone && !(await zones.hasPending(domain))
    if (mayBeDone && (await isShown(write, () => zones.read(domain)))) return nothing
    const queued = await this.#findQueued(domain, write)
    if (queued) return this.#carryOutQueued(domain, queued, context)
    try {
      return changesOf(await zones.queue.write(domain, write))
    } catch (failure) {
      if (!isUnsent(failure)) throw failure
      const again = (await this.#findQueued(domain, write)) ?? (await this.#queue(domain, write))
      return this.#carryOutQueued(domain, again, { ...context, failure })
    }
  }

  /** The same write, if it is queued, or done and still in the zone. */
  async #findQueued(domain: Domain, write: ChangeRequest): Promise<Queued | undefined> {
    // A repeat has to take effect after writes queued meanwhile to the same records: then it is queued again.
    const latest = this.#queued.find((each) => isSame(each.write, write) || isTouching(each.write, write))
    if (!latest || !isSame(latest.write, write)) return undefined
    const { ledger, zones } = this.#options
    const change = await ledger.find(latest.id)
    const readZone = async () => ({ value: await zones.readOrKnown(domain, write.callerId ?? write.by) })
    const isDone = change?.status === 'confirmed' && (await isShown(write, readZone))
    return isDone || change?.status === 'queued' ? latest : undefined
  }

  async #queue(domain: Domain, write: ChangeRequest): Promise<Queued> {
    const { id } = await this.#options.zones.queue.add(domain, write)
    const queued = { id, write, until: 0 }
    this.#queued = [queued, ...this.#queued.slice(0, maxKnown - 1)]
    return queued
  }

  /**
   * Tries again while the client waits, unless a call of the write before, or the read of an attempt, has failed; without
   * its client, while only calls are short: else the slots that are kept for it would stay unused.
   */
  async #carryOutQueued(domain: Domain, queued: Queued, { until, failure }: { until: number; failure?: unknown }) {
    const { ledger, clock, zones } = this.#options
    const { id, write } = queued
    let triesAt = 0
    let isShort = true
    const planNext = (error?: unknown) => {
      triesAt = error instanceof CallFailed ? Infinity : clock.now() + retryMs
      isShort = error === undefined || (error instanceof HttpError && error.code === 'registrar_busy')
    }
    if (failure !== undefined) planNext(failure)
    queued.until = Math.max(queued.until, until)
    const isAwaited = () => clock.now() < until
    const isClaiming = () => isShort && queued.until === until && clock.now() < until + claimMs
    for (; isAwaited() || isClaiming(); await delay(clock, isAwaited() ? pollMs : 4 * pollMs)) {
      const change = await ledger.find(id)
      if (change?.status === 'confirmed') return change.summary ?? nothing
      if (change?.problem) throw fromStoredProblem(change.problem)
      if (change?.status !== 'queued' && change?.status !== 'sending') break
      if (clock.now() < triesAt) continue
      triesAt = Infinity
      void zones.queue.retryNow(domain, id, write.callerId ?? write.by).then(planNext, planNext)
    }
    return undefined
  }
}

/** Whether a zone shows that a write would change nothing. Where it cannot be read, the write reports the error. */
const isShown = ({ edit }: ChangeRequest, readZone: () => Promise<{ value: Zone }>) =>
  readZone()
    .then(({ value: zone }) => applyEdit(zone, edit) === zone)
    .catch(() => false)

const isSame = (one: ChangeRequest, other: ChangeRequest) =>
  one.domain === other.domain &&
  one.callerId === other.callerId &&
  JSON.stringify(one.edit) === JSON.stringify(other.edit)

// Whether the outcome depends on the order of two writes.
const isTouching = (one: ChangeRequest, other: ChangeRequest) => {
  const others = one.domain === other.domain ? targetsOf(other.edit) : []
  return targetsOf(one.edit).some((target) =>
    others.some((each) => `${each} `.startsWith(`${target} `) || `${target} `.startsWith(`${each} `)),
  )
}

// `name type` of an RRset, `name type address` of a record.
function targetsOf(edit: ZoneEdit): string[] {
  if (edit.kind === 'setRrset') return [`${edit.name} ${edit.type}`]
  const records = edit.kind === 'ensure' ? [...edit.present, ...edit.absent] : []
  return records.map(({ name, type, address }) => `${name} ${type} ${address}`)
}

// Nothing was sent, since no call was free or the registrar fails: a later attempt may succeed.
const isUnsent = (error: unknown) =>
  error instanceof HttpError &&
  ['registrar_busy', 'registrar_unavailable', 'registrar_unreachable', 'registrar_timeout'].includes(error.code)
