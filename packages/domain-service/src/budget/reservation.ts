import type { Priority } from './call-windows.ts'
import type { WaitingCall } from './waiting-calls.ts'

/** What a reservation needs of its quota. */
interface Slots {
  /** Holds the slots, in the turn under way. */
  hold(reservation: Reservation): void
  /** Counts one held slot as a call made now; without any, takes one before everything else. */
  take(reservation: Reservation): Promise<void>
  release(reservation: Reservation): void
}

interface Wanted {
  priority: Priority
  slots: number
  callers: readonly string[]
}

/**
 * Slots for the calls of one batch: first queued, then held. After a 503 it keeps its place in the queue, or its slots,
 * until `absentUntil`: the first of its callers that retries takes it over.
 */
export class Reservation implements WaitingCall, Disposable {
  readonly priority: Priority
  readonly caller: string | undefined
  readonly #callers: readonly string[]
  readonly #quota: Slots
  /** Slots that no call has used yet. */
  slots: number
  deadline = 0
  absentUntil: number | undefined
  #client = Promise.withResolvers<void>()

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

  /** Resolves once it holds its slots. @throws 503 `registrar_busy` as soon as none can come free by the deadline. */
  enter(deadline: number): Promise<void> {
    this.deadline = deadline
    this.absentUntil = undefined
    this.#client = Promise.withResolvers()
    return this.#client.promise
  }

  take() {
    this.#quota.hold(this)
  }

  resolve() {
    this.#client.resolve()
  }

  refuse(error: unknown) {
    this.absentUntil = undefined
    this.#client.reject(error)
  }

  /**
   * Resolves when the batch's next call may be made, which is then counted. A call beyond the reserved ones goes before
   * everything else.
   * @throws 503 `registrar_busy` where a call beyond them finds no slot.
   */
  use(): Promise<void> {
    return this.#quota.take(this)
  }

  /** Gives the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release() {
    this.absentUntil = undefined
    this.slots = 0
    this.#quota.release(this)
  }

  [Symbol.dispose]() {
    this.release()
  }
}
