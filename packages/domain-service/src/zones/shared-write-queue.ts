import type { Domain } from '../dns/domain-name.ts'
import { serviceStopping, tooManyWaiting } from '../errors.ts'
import type { ChangeRequest, QueuedChange } from '../ledger/ledger.ts'
import { LocalWriteQueue } from './local-write-queue.ts'
import { SharedDomain, type SharedQueueOptions } from './shared-domain.ts'
import { maxQueued, type WriteQueue } from './write-queue.ts'
import type { WriteResult } from './zone-write.ts'

/**
 * The queue of all replicas, in the database. Whichever replica holds a domain's lease carries out what all of them have
 * queued for it; each replica answers its own clients from the ledger.
 */
export class SharedWriteQueue implements WriteQueue {
  readonly #options: SharedQueueOptions
  readonly #domains = new Map<string, SharedDomain>()
  /** Writes that are being queued in the database, by domain. */
  readonly #accepting = new Map<string, number>()
  readonly #dryRuns: LocalWriteQueue
  #isClosing = false

  constructor(options: SharedQueueOptions) {
    this.#options = options
    this.#dryRuns = new LocalWriteQueue({
      ...options,
      // Another replica may write the zone meanwhile.
      batch: { ...options.batch, isReadOnly: true, cache: { put: () => {}, drop: () => {} } },
    })
  }

  async write(domain: Domain, request: ChangeRequest, dryRun: boolean): Promise<WriteResult> {
    if (dryRun) return this.#dryRuns.write(domain, request, true)
    if (this.#isClosing) throw serviceStopping()
    const id = await this.#accept(domain, request)
    return this.#domainOf(domain).awaitEnd(id, { isAsync: false })
  }

  async carryOut(domain: Domain, { id }: QueuedChange): Promise<WriteResult> {
    return this.#domainOf(domain).awaitEnd(id, { isAsync: true })
  }

  check(domain: Domain): Promise<void> {
    return this.#domainOf(domain).check()
  }

  /** A change of this domain was queued or has ended; of any domain if it is undefined. */
  wake(domain?: string) {
    const woken = domain ? [this.#domains.get(domain)] : [...this.#domains.values()]
    for (const each of woken) each?.wake()
  }

  get waiting(): number {
    return [...this.#domains.values()].reduce((sum, { waiting }) => sum + waiting, 0)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    await this.#dryRuns.close()
    await Promise.all([...this.#domains.values()].map((domain) => domain.close()))
  }

  async #accept({ name }: Domain, request: ChangeRequest): Promise<number> {
    const accepting = this.#accepting.get(name) ?? 0
    const waiting = this.#domains.get(name)?.waiting ?? 0
    if (accepting + waiting >= maxQueued) throw tooManyWaiting()
    this.#accepting.set(name, accepting + 1)
    try {
      return await this.#options.pending.accept(request)
    } finally {
      const left = (this.#accepting.get(name) ?? 1) - 1
      if (left > 0) this.#accepting.set(name, left)
      else this.#accepting.delete(name)
    }
  }

  #domainOf(domain: Domain): SharedDomain {
    const known = this.#domains.get(domain.name)
    if (known) return known
    const onIdle = () => void this.#domains.delete(domain.name)
    const shared = new SharedDomain(domain, { ...this.#options, onIdle })
    this.#domains.set(domain.name, shared)
    return shared
  }
}
