import type { Domain } from '../dns/domain-name.ts'
import { idempotencyKeyReused, ledgerUnavailable, writeNotConfirmed } from '../errors.ts'
import type { ChangeRequest, Ledger } from '../ledger/ledger.ts'
import { fromStoredProblem, readResult, toStoredProblem, type WriteResult } from './zone-write.ts'

/** Carries out a change that the ledger has accepted under this id. */
type CarryOut = (id: number) => Promise<WriteResult>

/**
 * Writes with an Idempotency-Key: the same caller, key and request get the same result and no second write, also while
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

  async write(domain: Domain, request: ChangeRequest, carryOut: CarryOut): Promise<WriteResult> {
    const { key = '', fingerprint = '' } = request.idempotency ?? {}
    const id = JSON.stringify([request.callerId ?? request.by, key])
    const running = this.#running.get(id)
    if (running) {
      if (running.fingerprint !== fingerprint) throw idempotencyKeyReused()
      return running.result
    }
    const result = this.#carryOutOnce(domain, request, carryOut)
    this.#running.set(id, { fingerprint, result })
    try {
      return await result
    } finally {
      this.#running.delete(id)
    }
  }

  async #carryOutOnce(domain: Domain, request: ChangeRequest, carryOut: CarryOut) {
    for (let isChecked = false; ; isChecked = true) {
      const { id, isNew } = await this.#ledger.accept(request, { isAsync: false })
      if (isNew) return carryOut(id)
      const change = await this.#ledger.find(id)
      if (change?.status === 'confirmed') return readResult(this.#ledger, change)
      if (change?.problem) throw fromStoredProblem(change.problem)
      if (!change || isChecked) throw writeNotConfirmed(notConfirmed(id))
      if (change.sentAt) {
        // The process that sent it has ended.
        await this.#check(domain)
      } else {
        // A failing disk has kept an earlier attempt from being ended: this releases its key.
        const problem = toStoredProblem(ledgerUnavailable(undefined))
        await this.#ledger.endUnsent({ id, request }, { problem })
      }
    }
  }
}

const notConfirmed = (id: number) =>
  `Change ${id} is not confirmed yet: read the zone before you try again`
