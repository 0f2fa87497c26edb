import { type Caller, callerOf } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { type Clock, delay } from '../clock.ts'
import type { Domain } from '../dns/domain-name.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { HostRecord } from '../dns/record.ts'
import { registrarBusy } from '../errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { visibleError } from '../routes/visible-records.ts'
import { authorOf, fromStoredProblem, type ZoneWrite } from '../zones/zone-write.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'

/** Who writes, for the ledger. */
export interface WriteContext {
  caller: Caller
  requestId: string
}

export const contextOf = (request: FastifyRequest): WriteContext => ({
  caller: callerOf(request),
  requestId: request.id,
})

interface Options {
  zones: ZoneWriter
  ledger: Ledger
  clock: Clock
  /** ACME clients and routers give up after 30 s. */
  maxWaitMs?: number
}

const retryAfterSeconds = 15
const pollMs = 500
const maxRemembered = 10_000

/** Writes for clients that cannot wait: after 25 s they get 503, the write goes on, and a repeat finds it done. */
export class RetryingWriter {
  readonly #options: Required<Options>
  /** Ids of queued changes by their content, so that repeats do not queue them again. */
  readonly #queued = new Map<string, number>()

  constructor(options: Options) {
    this.#options = { maxWaitMs: 25_000, ...options }
  }

  /**
   * @returns the records that were added.
   * @throws {HttpError} 503 registrar_busy with Retry-After while the write goes on.
   */
  async write(domain: Domain, edit: ZoneEdit, context: WriteContext): Promise<HostRecord[]> {
    const { clock, maxWaitMs } = this.#options
    let isLate = false
    const done = this.#carryOut(domain, writeOf(edit, context), () => isLate)
    try {
      const added = await Promise.race([done, delay(clock, maxWaitMs)])
      if (added) return added
    } catch (error) {
      throw visibleError(error, context.caller)
    }
    isLate = true
    done.catch(() => undefined) // The ledger has its outcome.
    throw registrarBusy(retryAfterSeconds)
  }

  /** Whether this write was queued before and is not done yet. */
  async isQueued(domain: Domain, edit: ZoneEdit, context: WriteContext): Promise<boolean> {
    return (await this.#findQueued(domain, writeOf(edit, context))) !== undefined
  }

  async #carryOut(domain: Domain, write: ZoneWrite, isLate: () => boolean): Promise<HostRecord[]> {
    const queued = await this.#findQueued(domain, write)
    if (queued !== undefined) return this.#awaitQueued(queued, isLate)
    try {
      return (await this.#options.zones.write(domain, write)).added
    } catch (error) {
      if (!isUnsent(error)) throw error
      return this.#awaitQueued(await this.#queue(domain, write), isLate)
    }
  }

  async #findQueued(domain: Domain, write: ZoneWrite): Promise<number | undefined> {
    const id = this.#queued.get(keyOf(domain, write))
    const change = id === undefined ? undefined : await this.#options.ledger.find(id)
    return change?.status === 'queued' ? id : undefined
  }

  async #queue(domain: Domain, write: ZoneWrite): Promise<number> {
    const known = await this.#findQueued(domain, write)
    if (known !== undefined) return known
    if (this.#queued.size >= maxRemembered) this.#queued.clear()
    const { id } = await this.#options.zones.changes.add(domain, write)
    this.#queued.set(keyOf(domain, write), id)
    return id
  }

  async #awaitQueued(id: number, isLate: () => boolean): Promise<HostRecord[]> {
    const { ledger, clock } = this.#options
    while (!isLate()) {
      const change = await ledger.find(id)
      if (change?.status === 'confirmed') return change.summary?.added ?? []
      if (change?.problem) throw fromStoredProblem(change.problem)
      if (change?.status !== 'queued' && change?.status !== 'sending')
        throw registrarBusy(retryAfterSeconds)
      await delay(clock, pollMs)
    }
    return []
  }
}

// These clients know no preconditions and no dry run.
const writeOf = (edit: ZoneEdit, { caller, requestId }: WriteContext): ZoneWrite => ({
  ...authorOf(caller),
  edit,
  ifMatch: undefined,
  dryRun: false,
  force: false,
  requestId,
})

const keyOf = (domain: Domain, { callerId, edit }: ZoneWrite) =>
  JSON.stringify([domain.name, callerId, edit])

// Nothing was sent, for want of calls or because the registrar fails: it may work later.
const isUnsent = (error: unknown) =>
  error instanceof HttpError &&
  [
    'registrar_busy',
    'registrar_unavailable',
    'registrar_unreachable',
    'registrar_timeout',
  ].includes(error.code)
