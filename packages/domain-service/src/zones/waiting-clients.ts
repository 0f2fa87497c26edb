import { databaseProblem } from '@domains-and-files/http'
import { OutcomeUnknownError } from '@domains-and-files/persistence'
import { changeCancelled, writeNotConfirmed } from '../errors.ts'
import { fromStoredProblem, type Ledger, type QueuedChange } from '../ledger/ledger.ts'
import type { AwaitedChanges } from '../ledger/replicas/awaited-changes.ts'
import { resultOf, type WriteResult } from './batch/evaluate-write.ts'

const outcomeUnknown = (cause: unknown) => databaseProblem(new OutcomeUnknownError(cause)) ?? cause

/** The clients of this process that wait for changes of one domain to end, whichever process carries them out. */
export class WaitingClients {
  readonly #ledger: Ledger
  readonly #awaited: AwaitedChanges | undefined
  /** Clients by the id of their change. Several may wait for one change, with the same idempotency key. */
  readonly ends = new Map<number, PromiseWithResolvers<WriteResult>[]>()
  /** Changes in the running batch of this process, which reports how they end. */
  readonly pulled = new Set<number>()

  /** With `awaited`: other processes may carry out a change, too. */
  constructor(ledger: Ledger, awaited: AwaitedChanges | undefined) {
    this.#ledger = ledger
    this.#awaited = awaited
  }

  wait(id: number): Promise<WriteResult> {
    const end = Promise.withResolvers<WriteResult>()
    this.ends.set(id, [...(this.ends.get(id) ?? []), end])
    // A batch of this process reports the ends of its changes itself.
    this.#awaited?.add(id, (cause) => {
      if (!this.pulled.has(id)) this.#reject(id, outcomeUnknown(cause))
    })
    return end.promise
  }

  resolve({ id }: QueuedChange, result: WriteResult) {
    for (const end of this.#take(id)) end.resolve(result)
  }

  // Another replica may have taken over a change that failed here, so the ledger decides how it ends.
  reject({ id }: QueuedChange, error: unknown) {
    if (!this.#awaited) this.#reject(id, error)
  }

  /**
   * Ends a batch. Those of its changes that have not ended by then could not be recorded; after a failed batch that was
   * empty this may be true of every change that was `waiting` before it. The next batch carries out those that came later.
   */
  async endBatch(failure: unknown, waiting: number[]) {
    const ids = failure && this.pulled.size === 0 ? waiting : [...this.pulled]
    this.pulled.clear()
    await this.answerEnded()
    if (failure || this.#awaited) this.giveUp(failure, ids)
  }

  /** Answers the clients whose changes have ended, in whichever process. @throws where the ledger cannot be read. */
  async answerEnded() {
    const ids = [...this.ends.keys()].filter((id) => !this.pulled.has(id))
    for (const id of ids.length > 0 ? await this.#ledger.ended(ids) : []) {
      try {
        const result = await readEnd(this.#ledger, id)
        for (const end of this.#take(id)) end.resolve(result)
      } catch (error) {
        if (databaseProblem(error)) throw error
        this.#reject(id, error)
      }
    }
  }

  /**
   * Answers these clients that the ledger is unavailable, except those whose change is in a batch of this process. One
   * that reads the zone after this answer sees the outcome: no replica begins the change later.
   */
  giveUp(error: unknown, ids: Iterable<number> = this.ends.keys()) {
    for (const id of ids) {
      const cause = this.#awaited ? outcomeUnknown(error) : error
      const answer = () => {
        if (!this.pulled.has(id)) this.#reject(id, cause)
      }
      if (this.#awaited) this.#awaited.expire(id).then(answer, answer)
      else answer()
    }
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

/** The result of a change that has ended, as the ledger has it. @throws {HttpError} where it is not confirmed. */
async function readEnd(ledger: Ledger, id: number): Promise<WriteResult> {
  const change = await ledger.find(id)
  if (change?.problem && change.status !== 'confirmed') throw fromStoredProblem(change.problem)
  if (change?.status === 'cancelled') throw changeCancelled(id)
  if (change?.status !== 'confirmed')
    throw writeNotConfirmed(`Change ${id} is not confirmed yet: read the zone before you try again`)
  const zones = await ledger.zonesOf(id)
  if (!zones) throw new Error(`change ${id} has no zones`)
  return resultOf({ ...zones, warnings: change.warnings }, zones.found, change.verified === 1)
}
