import { randomUUID } from 'node:crypto'
import type { Clock, Timer } from '@domains-and-files/http'
import type { Hold } from './call-budget.ts'
import type { Priority } from './call-windows.ts'
import type { WaitingCall } from './waiting-calls.ts'

/** What a reservation asks of its quota. */
export interface Slots {
  readonly clock: Clock
  /** The time by which slots come free. */
  now(): number
  /** Takes the slots in the turn under way. */
  hold(hold: Hold): void
  /** Counts one held slot as a call made now; without any, takes one before everything else. */
  use(hold: Hold): Promise<void>
  release(hold: Hold): void
}

interface Wanted {
  priority: Priority
  slots: number
  callers: readonly string[]
}

/**
 * Slots for the calls of one batch, waited for and then held. It keeps its place in the queue, and its slots for a while,
 * when its callers are sent away: the first of them that comes back enters it.
 */
export class Reservation implements Hold, WaitingCall, Disposable {
  readonly id = randomUUID()
  readonly priority: Priority
  readonly caller: string | undefined
  readonly #callers: readonly string[]
  readonly #quota: Slots
  /** Slots that no call has used yet. */
  slots: number
  expiresAt = Number.POSITIVE_INFINITY
  deadline = 0
  absentUntil: number | undefined
  #client: PromiseWithResolvers<void> | undefined
  #isHeld = false
  #timer: Timer | undefined

  constructor({ priority, slots, callers }: Wanted, quota: Slots) {
    this.priority = priority
    this.slots = slots
    this.#callers = callers
    this.caller = callers[0]
    this.#quota = quota
  }

  /** Whether it waits for one of these callers to come back. */
  isKeptFor(callers: readonly string[]): boolean {
    return this.absentUntil !== undefined && callers.some((each) => this.#callers.includes(each))
  }

  /** Resolves once it holds its slots. @throws 503 `registrar_busy` as soon as that cannot be by the deadline. */
  async enter(deadline: number): Promise<void> {
    this.#timer?.cancel()
    this.deadline = deadline
    this.absentUntil = undefined
    this.#client = Promise.withResolvers()
    if (!this.#isHeld) await this.#client.promise
  }

  take() {
    this.#quota.hold(this)
  }

  resolve() {
    this.#isHeld = true
    if (this.absentUntil === undefined) return this.#client?.resolve()
    const leftMs = this.absentUntil - this.#quota.now()
    if (leftMs <= 0) return this.release()
    this.#timer = this.#quota.clock.setTimer(() => this.release(), leftMs)
  }

  refuse(error: unknown) {
    this.absentUntil = undefined
    this.#client?.reject(error)
  }

  /**
   * Resolves when the batch's next call may be made, which is then counted. A call beyond the reserved ones goes before
   * everything else.
   * @throws 503 `registrar_busy` where a call beyond them finds no slot.
   */
  use(): Promise<void> {
    return this.#quota.use(this)
  }

  /** Gives the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release() {
    this.absentUntil = undefined
    if (this.slots === 0) return
    this.slots = 0
    this.#quota.release(this)
  }

  /** Nobody comes back: what it holds is released, and the next turn of the queue refuses it. */
  giveUp() {
    this.#timer?.cancel()
    if (this.#isHeld) this.release()
    else this.absentUntil = Number.NEGATIVE_INFINITY
  }

  [Symbol.dispose]() {
    this.release()
  }
}
