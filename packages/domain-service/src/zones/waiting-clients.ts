import { databaseProblem } from '@domains-and-files/http'
import { OutcomeUnknownError } from '@domains-and-files/persistence'
import type { Ledger, QueuedChange } from '../ledger/ledger.ts'
import type { AwaitedChanges } from '../ledger/replicas/awaited-changes.ts'
import { isDatabaseAway, type QueuedWrite, readEnd, type WriteResult } from './zone-write.ts'

/** A change that failed here so often, and has not ended, is left to other replicas. */
const maxFailures = 3

const outcomeUnknown = (cause: unknown) => databaseProblem(new OutcomeUnknownError(cause)) ?? cause

/** The clients of this process that wait for changes of one domain to end, whichever process carries them out. */
export class WaitingClients {
  readonly #ledger: Ledger
  readonly #awaited: AwaitedChanges | undefined
  /** By the changes that they wait for. Several may have sent one change under an idempotency key. */
  readonly ends = new Map<number, PromiseWithResolvers<WriteResult>[]>()
  /** Changes that the batch of this process has, which reports their ends. */
  readonly pulled = new Set<number>()
  /** How often a batch of this process has failed to carry out a change. */
  readonly #failures = new Map<number, number>()

  /** With `awaited`: other processes may carry out a change, too. */
  constructor(ledger: Ledger, awaited: AwaitedChanges | undefined) {
    this.#ledger = ledger
    this.#awaited = awaited
  }

  wait(id: number): Promise<WriteResult> {
    const end = Promise.withResolvers<WriteResult>()
    this.ends.set(id, [...(this.ends.get(id) ?? []), end])
    // A batch of this process reports itself how its changes ended.
    this.#awaited?.add(id, (cause) => {
      if (!this.pulled.has(id)) this.#reject(id, outcomeUnknown(cause))
    })
    return end.promise
  }

  /** A change for the batch of this process; undefined where batches of it have failed too often. */
  pull(change: QueuedChange): QueuedWrite | undefined {
    const { id, isAsync } = change
    if ((this.#failures.get(id) ?? 0) >= maxFailures) return undefined
    this.pulled.add(id)
    return {
      ...change,
      resolve: (result) => {
        for (const end of this.#take(id)) end.resolve(result)
      },
      reject: (error) => {
        if (!this.#awaited) this.#reject(id, error)
        else if (!isAsync) this.#countFailure(id, error, this.#awaited)
      },
    }
  }

  // Another replica may have taken over what failed here, so the ledger decides. A change that cannot be ended in it would be
  // carried out again and again.
  #countFailure(id: number, error: unknown, awaited: AwaitedChanges) {
    const failures = (this.#failures.get(id) ?? 0) + 1
    this.#failures.set(id, failures)
    const isLate = isDatabaseAway(error) && awaited.isExpired(id)
    if (isLate) this.#reject(id, outcomeUnknown(error))
    else if (failures >= maxFailures) this.#giveUp(id, error)
  }

  /** A batch has ended. What was not in it, though nothing else was, has an end that batches fail to record. */
  endBatch(error?: unknown) {
    for (const id of this.ends.keys()) {
      const isUnrecorded = this.pulled.size === 0 || this.#failures.has(id)
      if (this.#awaited && isUnrecorded && !this.pulled.has(id))
        this.#countFailure(id, error, this.#awaited)
    }
    this.pulled.clear()
  }

  /** Answers those whose changes have ended, by whichever replica. */
  async answerEnded() {
    if (!this.#awaited) return
    const ids = [...this.ends.keys()].filter((id) => !this.pulled.has(id))
    if (ids.length > 0) await this.answer(await this.#ledger.ended(ids))
  }

  /** Answers with what the ledger has of these changes. @throws where it cannot be read. */
  async answer(ids: number[]) {
    for (const id of ids) {
      if (!this.ends.has(id)) continue
      try {
        const result = await readEnd(this.#ledger, id)
        for (const end of this.#take(id)) end.resolve(result)
      } catch (error) {
        if (databaseProblem(error)) throw error
        this.#reject(id, error)
      }
    }
  }

  /** The ledger cannot be used: answers all but those whose changes a batch of this process has. */
  giveUp(error: unknown) {
    for (const id of this.ends.keys()) if (!this.pulled.has(id)) this.#giveUp(id, error)
  }

  // A client that reads the zone after this answer sees the outcome: no replica begins the change later.
  #giveUp(id: number, error: unknown) {
    if (!this.#awaited) return this.#reject(id, error)
    const answer = () => this.#reject(id, outcomeUnknown(error))
    this.#awaited.expire(id).then(answer, answer)
  }

  #take(id: number) {
    const ends = this.ends.get(id) ?? []
    this.ends.delete(id)
    this.#awaited?.delete(id)
    return ends
  }

  #reject(id: number, error: unknown) {
    for (const end of this.#take(id)) end.reject(error)
  }
}
