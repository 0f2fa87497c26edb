import type { Domain } from '../dns/domain-name.ts'
import { idempotencyKeyReused, writeNotConfirmed } from '../errors.ts'
import type { ChangeRequest, Ledger } from '../ledger/ledger.ts'
import { fromStoredProblem, readResult, type WriteResult } from './zone-write.ts'

/**
 * Writes with an Idempotency-Key: the same user, key and request get the same result and no second write, also while
 * the first one runs and after a crash. @throws 422 `idempotency_key_reused` for another request under the same key.
 */
export class IdempotentWrites {
  readonly #ledger: Ledger
  readonly #check: (domain: Domain) => Promise<void>
  readonly #running = new Map<string, { fingerprint: string; result: Promise<WriteResult> }>()

  /** `check` resolves the open sends of a domain. */
  constructor(ledger: Ledger, check: (domain: Domain) => Promise<void>) {
    this.#ledger = ledger
    this.#check = check
  }

  async write(
    domain: Domain,
    request: ChangeRequest,
    run: () => Promise<WriteResult>,
  ): Promise<WriteResult> {
    const { key = '', fingerprint = '' } = request.idempotency ?? {}
    const id = JSON.stringify([request.callerId ?? request.by, key])
    const running = this.#running.get(id)
    if (running) {
      if (running.fingerprint !== fingerprint) throw idempotencyKeyReused()
      return running.result
    }
    const result = this.#replay(domain, request).then((replayed) => replayed ?? run())
    this.#running.set(id, { fingerprint, result })
    try {
      return await result
    } finally {
      this.#running.delete(id)
    }
  }

  async #replay(domain: Domain, request: ChangeRequest): Promise<WriteResult | undefined> {
    const id = await findKnown(this.#ledger, request)
    if (id === undefined) return undefined
    let change = await this.#ledger.find(id)
    if (change?.status === 'sending') {
      // The process that sent it has ended.
      await this.#check(domain)
      change = await this.#ledger.find(id)
    }
    if (!change || (await findKnown(this.#ledger, request)) === undefined) return undefined
    if (change.status === 'confirmed') return readResult(this.#ledger, change)
    if (change.problem) throw fromStoredProblem(change.problem)
    if (change.status === 'cancelled') return undefined
    throw writeNotConfirmed(`Change ${id} is not confirmed yet: read the zone before you try again`)
  }
}

/** The change that used this key within 24 hours. @throws 422 where it was another request. */
export async function findKnown(
  ledger: Ledger,
  request: ChangeRequest,
): Promise<number | undefined> {
  const { idempotency } = request
  if (!idempotency) return undefined
  const known = await ledger.findByKey(request, idempotency.key)
  if (known && known.fingerprint !== idempotency.fingerprint) throw idempotencyKeyReused()
  return known?.id
}
