import { hash } from 'node:crypto'
import { type Caller, onlyProposes } from '@domains-and-files/auth'
import { HttpError, type Timer } from '@domains-and-files/http'
import { BackgroundTask } from '@domains-and-files/persistence'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import { applyEdit } from '../dns/edits/apply-edit.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { Zone } from '../dns/zone.ts'
import { serviceStopping, tooManyWaiting } from '../errors.ts'
import type { ChangeRequest, StoredChange } from '../ledger/ledger.ts'
import type { WriteResult } from './batch/evaluate-write.ts'
import { DomainWrites } from './domain-writes.ts'
import type { ZoneDependencies } from './zone-dependencies.ts'

/** Maximum queued writes per domain; further requests get 503. */
export const maxQueued = 1_000
/** Maximum characters of JSON of the queued writes of one domain, and of all; further requests get 503. */
const maxQueuedLength = 96 * 1024 * 1024
const maxTotalLength = 128 * 1024 * 1024

/** Domains whose asynchronous changes are carried out at once. */
const maxActive = 8
/** Asynchronous changes that arrive within this time share a batch: registrar quota is scarcer than latency. */
const debounceMs = 500
/** Poll interval for failed changes, and for those that other replicas have queued: the ledger knows when each is due. */
const pollMs = 2_000

/**
 * The writes of all domains: one batch at a time for each; different domains run side by side. Asynchronous changes are
 * carried out at the registrar's pace, however long that takes.
 */
export class WriteQueue {
  readonly #options: ZoneDependencies
  readonly #domains = new Map<string, DomainWrites>()
  /** Domains whose asynchronous changes are carried out. */
  readonly #active = new Set<string>()
  readonly #task: BackgroundTask
  /** Of the last change that was accepted. */
  #debounce: Timer | undefined
  #isClosing = false

  constructor(options: ZoneDependencies) {
    const { clock, log } = options
    this.#options = options
    const onError = (error: unknown) => log.error({ err: error }, 'queued changes not read')
    this.#task = new BackgroundTask({ run: () => this.#startNext(), clock, onError })
    if (options.replicas)
      options.replicas.onChange = (domain) => {
        const changed = domain ? [this.#domains.get(domain)] : this.#domains.values()
        for (const each of changed) each?.wake()
      }
  }

  /** Resolves when the change is done. */
  async write(domain: Domain, request: ChangeRequest): Promise<WriteResult> {
    const writes = this.#writesOf(domain)
    const length = JSON.stringify(request.edit).length
    const total = [...this.#domains.values()].reduce((sum, each) => sum + each.length, length)
    const isFull = writes.length + length > maxQueuedLength || total > maxTotalLength
    if (isFull || writes.waiting >= maxQueued) throw tooManyWaiting()
    writes.length += length
    try {
      return await writes.write(request)
    } finally {
      writes.length -= length
    }
  }

  /**
   * Accepts an asynchronous change; resolves once it is stored.
   * @throws {HttpError} validation_failed for a faulty list or RRset, unless the faulty records are already in the zone.
   */
  async add(domain: Domain, request: ChangeRequest): Promise<StoredChange> {
    const { ledger, registrar, clock } = this.#options
    const empty = { domain: domain.name, usesRegistrarDns: true, emailType: undefined, rows: [] }
    // Only a new, faulty request costs a read. If that fails, the change is queued, and its outcome reports the faults.
    if (findFaults(empty, request.edit) && !(await ledger.findByKey(request))) {
      const live = await registrar.zone(domain, 'read').catch(() => undefined)
      const faults = live && findFaults(live, request.edit)
      if (faults) throw faults
    }
    const { change } = await ledger.accept(request)
    this.#debounce ??= clock.setTimer(() => {
      this.#debounce = undefined
      this.startQueued()
    }, debounceMs)
    return change
  }

  /**
   * Carries out a queued change as if it was a write of this caller, who waits for it; also after a failed attempt.
   * Resolves when the attempt has ended, or found no free calls; rejects where the zone could not be read.
   */
  async retryNow(domain: Domain, id: number, caller: string): Promise<void> {
    await this.#writesOf(domain).carryOut({ mustRead: false, awaited: { id, caller } })
  }

  /** Carries out asynchronous changes from now on. Does nothing where it has been started before. */
  start(): Promise<void> {
    return this.#task.start(pollMs)
  }

  /** Looks for asynchronous changes now. */
  startQueued() {
    void this.#task.runAgain()
  }

  async #startNext(): Promise<void> {
    const { isActive, ledger, log } = this.#options
    for (const name of isActive() ? await ledger.queuedDomains() : []) {
      const domain = readDomain(name)
      if (this.#isClosing || this.#active.size >= maxActive) return
      if (this.#active.has(name) || typeof domain === 'string') continue
      this.#active.add(name)
      this.#writesOf(domain)
        .carryOut({ mustRead: false })
        .finally(() => this.#active.delete(name))
        .then(
          () => this.#isClosing || this.startQueued(),
          (error) => this.#isClosing || log.warn({ err: error, domain: name }, 'queued changes not carried out'),
        )
    }
  }

  /** Reads the zone, resolves its open sends and repairs a late write. Waits for call slots without a deadline. */
  async check(domain: Domain): Promise<void> {
    await this.#writesOf(domain).carryOut({ mustRead: true })
  }

  /** Whether writes of this domain wait or are under way in this process. */
  isBusy(domain: Domain): boolean {
    return this.#domains.has(domain.name)
  }

  /** Writes whose clients wait, over all domains. */
  get waiting(): number {
    return [...this.#domains.values()].reduce((sum, { waiting }) => sum + waiting, 0)
  }

  /** Carries out the writes whose clients wait; resolves when no batch runs any more. Asynchronous changes stay queued. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#debounce?.cancel()
    await this.#task.close()
    await Promise.all([...this.#domains.values()].map((domain) => domain.close()))
  }

  // One object at a time for each domain: the only process has no lease.
  #writesOf(domain: Domain): DomainWrites {
    if (this.#isClosing) throw serviceStopping()
    const onIdle = () => void this.#domains.delete(domain.name)
    return this.#domains.getOrInsertComputed(domain.name, () => new DomainWrites(domain, { ...this.#options, onIdle }))
  }
}

function findFaults(zone: Zone, edit: ZoneEdit): HttpError | undefined {
  if (!['replace', 'setRrset', 'removeRrset'].includes(edit.kind)) return undefined
  try {
    applyEdit(zone, edit)
  } catch (error) {
    if (error instanceof HttpError && error.code === 'validation_failed') return error
  }
  return undefined
}

type RequestedChange = Pick<ChangeRequest, 'domain' | 'edit' | 'ifMatch' | 'ifNoneMatch' | 'force' | 'requestId'> & {
  /** The same caller, key and change within 24 hours get the same result and no second change. */
  idempotencyKey?: string | undefined
}

/**
 * A change as this caller requests it. `mode` is part of what an idempotency key stands for.
 * @throws 403 for a caller who may only propose, in a mode that writes.
 */
export function requestOf(
  { id, username, token, records, writes }: Caller,
  requested: RequestedChange,
  mode: 'sync' | 'async' | 'propose' | 'dry run',
): ChangeRequest {
  if (writes === 'propose' && (mode === 'sync' || mode === 'async')) throw onlyProposes()
  const { domain, edit, ifMatch, ifNoneMatch, force, requestId, idempotencyKey: key } = requested
  const content = { domain, edit, ifMatch, ifNoneMatch, force }
  const fingerprint = () => hash('sha256', JSON.stringify([content, mode]), 'base64url')
  const author = { by: username, token: token?.name, callerId: id, recordLimits: records }
  const idempotency = key === undefined ? undefined : { key, fingerprint: fingerprint() }
  return { ...content, ...author, requestId, idempotency }
}
