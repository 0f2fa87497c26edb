import type { Domain } from '../dns/domain-name.ts'
import { serviceStopping, tooManyWaiting } from '../errors.ts'
import type { ChangeRequest } from '../ledger/ledger.ts'
import { DomainWrites, type WriteQueueOptions } from './domain-writes.ts'
import type { WriteResult } from './zone-write.ts'

/** Maximum queued writes per domain; further requests get 503. */
export const maxQueued = 1_000
/** Maximum characters of JSON of the queued writes of one domain, and of all; further requests get 503. */
const maxQueuedLength = 96 * 1024 * 1024
const maxTotalLength = 128 * 1024 * 1024

/** The writes of all domains: one batch at a time for each; different domains run side by side. */
export class WriteQueue {
  readonly #options: WriteQueueOptions
  readonly #domains = new Map<string, DomainWrites>()
  /** Characters of JSON of the writes that wait, over all domains. */
  #length = 0
  #isClosing = false

  constructor(options: WriteQueueOptions) {
    this.#options = options
  }

  /** Resolves when the change is done. */
  async write(domain: Domain, request: ChangeRequest): Promise<WriteResult> {
    if (this.#isClosing) throw serviceStopping()
    const writes = this.#writesOf(domain)
    const length = JSON.stringify(request.edit).length
    const isFull =
      writes.length + length > maxQueuedLength || this.#length + length > maxTotalLength
    if (isFull || writes.waiting >= maxQueued) throw tooManyWaiting()
    writes.length += length
    this.#length += length
    try {
      return await writes.write(request)
    } finally {
      writes.length -= length
      this.#length -= length
    }
  }

  /** Carries out the asynchronous changes of a domain; resolves when none is left that a batch can take now. */
  carryOut(domain: Domain): Promise<void> {
    return this.#writesOf(domain).carryOut()
  }

  /** Reads the zone, resolves its open sends and repairs a late write. Waits for calls however long. */
  check(domain: Domain): Promise<void> {
    return this.#writesOf(domain).check()
  }

  /** A change of this domain was queued or has ended at another replica; of any domain if it is undefined. */
  wake(domain?: string) {
    const woken = domain ? [this.#domains.get(domain)] : this.#domains.values()
    for (const each of woken) each?.wake()
  }

  /** Whether writes of this domain wait or are under way in this process. */
  isBusy(domain: Domain): boolean {
    return this.#domains.has(domain.name)
  }

  /** Writes whose clients wait, over all domains. */
  get waiting(): number {
    return [...this.#domains.values()].reduce((sum, { waiting }) => sum + waiting, 0)
  }

  /** Carries out the writes whose clients wait; resolves when no batch runs any more. */
  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.all([...this.#domains.values()].map((domain) => domain.close()))
  }

  // One object at a time for each domain: the only process has no lease.
  #writesOf(domain: Domain): DomainWrites {
    const known = this.#domains.get(domain.name)
    if (known) return known
    const onIdle = () => void this.#domains.delete(domain.name)
    const writes = new DomainWrites(domain, { ...this.#options, onIdle })
    this.#domains.set(domain.name, writes)
    return writes
  }
}
