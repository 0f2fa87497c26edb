import type { Caller } from '@domains-and-files/auth'
import { delay, HttpError } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import type { Domain } from '../dns/domain-name.ts'
import { applyEdit } from '../dns/edits/apply-edit.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import { changesOf } from '../dns/zone.ts'
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

const nothing: ChangeSummary = { added: [], removed: [], kept: 0 }

/** ACME clients and routers give up after 30 s. */
export const maxWaitMs = 25_000
export const retryAfterSeconds = 15
const pollMs = 500
/** Pause between attempts that make no call; that of the circuit breaker. */
const retryMs = 5_000
const maxKnown = 1_000

/**
 * Writes for clients that cannot wait: after 25 s they get 503, the write goes on, and a repeat finds it done, or is
 * the next attempt.
 */
export class RetryingWriter {
  readonly #options: Dependencies
  /** Changes that were queued, newest first, so that repeats do not queue them again. */
  #queued: { id: number; write: ChangeRequest }[] = []

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

  // Not while a change is pending, which could undo it.
  async #isDone(domain: Domain, edit: ZoneEdit): Promise<boolean> {
    const { zones } = this.#options
    try {
      const isChanging = await zones.hasPending(domain)
      const { value: zone } = await zones.read(domain)
      return !isChanging && applyEdit(zone, edit) === zone
    } catch {
      return false // The write reports the error.
    }
  }

  async #carryOut(
    domain: Domain,
    write: ChangeRequest,
    { unlessDone, until }: { unlessDone: boolean; until: number },
  ): Promise<ChangeSummary | undefined> {
    if (unlessDone && (await this.#isDone(domain, write.edit))) return nothing
    const { queue } = this.#options.zones
    const queued = await this.#findQueued(write)
    if (queued !== undefined) return this.#carryOutQueued(queued, { domain, write, until })
    try {
      return changesOf(await queue.write(domain, write))
    } catch (error) {
      if (!isUnsent(error)) throw error
      const id = (await this.#findQueued(write)) ?? (await this.#queue(domain, write))
      return this.#carryOutQueued(id, { domain, write, until, failure: error })
    }
  }

  async #findQueued(write: ChangeRequest): Promise<number | undefined> {
    // A repeat has to take effect after writes queued meanwhile to the same records: then it is queued again.
    const latest = this.#queued.find((each) => isSame(each.write, write) || isTouching(each.write, write))
    if (!latest || !isSame(latest.write, write)) return undefined
    const change = await this.#options.ledger.find(latest.id)
    return change?.status === 'queued' ? latest.id : undefined
  }

  async #queue(domain: Domain, write: ChangeRequest): Promise<number> {
    const { id } = await this.#options.zones.queue.add(domain, write)
    this.#queued = [{ id, write }, ...this.#queued.slice(0, maxKnown - 1)]
    return id
  }

  /** Tries again while the client waits, unless a call of the write before, or the read of an attempt, has failed. */
  async #carryOutQueued(
    id: number,
    { domain, write, until, failure }: { domain: Domain; write: ChangeRequest; until: number; failure?: unknown },
  ): Promise<ChangeSummary | undefined> {
    const { ledger, clock, zones } = this.#options
    let triesAt = 0
    const planNext = (error?: unknown) => {
      triesAt = error instanceof CallFailed ? Infinity : clock.now() + retryMs
    }
    if (failure !== undefined) planNext(failure)
    for (; clock.now() < until; await delay(clock, pollMs)) {
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
