import type { Clock, Timer } from '@domains-and-files/http'
import { registrarBusy } from '../errors.ts'
import type { WaitingCall } from './waiting-calls.ts'

/** What a reservation asks of its quota. */
interface Slots {
  /** Counts one held slot as a call made now. */
  use: () => Promise<void>
  /** Takes a slot that was not reserved, before everything else. */
  followUp: () => Promise<void>
  release: (unused: number) => void
}

/** Slots held for the calls of one write round. */
export class Reservation {
  readonly #slots: Slots
  #unused: number

  constructor(calls: number, slots: Slots) {
    this.#slots = slots
    this.#unused = calls
  }

  /** Slots that no call has used yet. */
  get unused(): number {
    return this.#unused
  }

  /**
   * Resolves when the round's next call may be made, which is then counted. A call beyond the reserved ones goes before
   * everything else.
   * @throws 503 `registrar_busy` where a call beyond them finds no slot.
   */
  async use(): Promise<void> {
    if (this.#unused === 0) return this.#slots.followUp()
    this.#unused--
    await this.#slots.use()
  }

  /** Gives the unused slots back. Releasing twice does nothing; later calls are follow-ups. */
  release() {
    const unused = this.#unused
    this.#unused = 0
    if (unused > 0) this.#slots.release(unused)
  }

  [Symbol.dispose]() {
    this.release()
  }
}

/** A reservation that waits for its slots. `granted` resolves once it holds them. */
export interface OpenedReservation {
  call: WaitingCall
  granted: Promise<void>
  reservation: Reservation
}

interface Options {
  clock: Clock
  /** The time by which slots come free. */
  now: () => number
  /** Looks for free slots. */
  serve: () => void
}

/** Places that are kept at once; the oldest is given up for a further one. */
const maxPlaces = 500

/**
 * Places in the queue of calls that outlast a 503: who comes back when told gets in, however many others wait. A place
 * belongs to the callers of one batch; the first of them that comes back takes it.
 */
export class KeptPlaces {
  readonly #options: Options
  #kept: Place[] = []

  constructor(options: Options) {
    this.#options = options
  }

  /** @throws 503 `registrar_busy` with a true Retry-After as soon as the slots cannot come free within the wait. */
  reserve(
    callers: readonly string[],
    maxWaitMs: number,
    open: () => OpenedReservation,
  ): Promise<Reservation> {
    const at = this.#kept.findIndex((place) => callers.some((caller) => place.isOf(caller)))
    const [known] = at < 0 ? [] : this.#kept.splice(at, 1)
    const place = known ?? new Place(open(), callers, this.#options)
    const deadline = this.#options.now() + maxWaitMs
    return place.enter(deadline, () => {
      this.#kept.push(place)
      if (this.#kept.length > maxPlaces) this.#kept.shift()?.giveUp()
      return () => {
        this.#kept = this.#kept.filter((each) => each !== place)
      }
    })
  }

  close() {
    for (const place of this.#kept.splice(0)) place.giveUp()
  }
}

class Place {
  readonly #opened: OpenedReservation
  readonly #callers: ReadonlySet<string>
  readonly #options: Options
  #client: PromiseWithResolvers<Reservation> | undefined
  #isGranted = false
  #forget = () => {}
  #timer: Timer | undefined

  constructor(opened: OpenedReservation, callers: readonly string[], options: Options) {
    this.#opened = opened
    this.#callers = new Set(callers)
    this.#options = options
    opened.granted.then(
      () => this.#grant(),
      (error) => this.#refuse(error),
    )
  }

  isOf(caller: string): boolean {
    return this.#callers.has(caller)
  }

  /** `keep` is called when the client is sent away; what it returns, when nobody has come back in time. */
  enter(deadline: number, keep: () => () => void): Promise<Reservation> {
    const { call, reservation } = this.#opened
    this.#timer?.cancel()
    if (this.#isGranted) return Promise.resolve(reservation)
    const client = Promise.withResolvers<Reservation>()
    this.#client = client
    call.deadline = deadline
    call.absentUntil = undefined
    call.leave = (retryAfter) => {
      this.#client = undefined
      this.#forget = keep()
      client.reject(registrarBusy(retryAfter))
    }
    this.#options.serve()
    return client.promise
  }

  giveUp() {
    this.#timer?.cancel()
    this.#opened.call.absentUntil = Number.NEGATIVE_INFINITY
    if (this.#isGranted) this.#opened.reservation.release()
    else this.#options.serve()
  }

  #grant() {
    const { call, reservation } = this.#opened
    this.#isGranted = true
    if (this.#client) return this.#client.resolve(reservation)
    const leftMs = (call.absentUntil ?? 0) - this.#options.now()
    if (leftMs <= 0) return this.#release()
    this.#timer = this.#options.clock.setTimer(() => this.#release(), leftMs)
  }

  #release() {
    this.#forget()
    this.#opened.reservation.release()
  }

  #refuse(error: unknown) {
    this.#forget()
    this.#client?.reject(error)
  }
}
