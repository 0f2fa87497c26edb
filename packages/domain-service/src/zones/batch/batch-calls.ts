import { HttpError } from '@domains-and-files/http'
import type { Reservation, ReserveOptions } from '../../budget/call-quota.ts'
import type { Clock } from '../../clock.ts'
import type { Domain } from '../../dns/domain-name.ts'
import type { Zone } from '../../dns/record.ts'
import type { RegistrarClient } from '../../registrar/client.ts'

// Another tool may have written since, and a write would undo that. From the first byte of the read's request to the
// first byte of the write's: less than a second, with a margin for the resolution of clocks.
const maxReadAgeMs = 980

/** Thrown at the moment of sending: the zone was read too long ago. Nothing was sent. */
export class StaleRead extends HttpError {
  constructor() {
    const detail = 'The registrar answers so slowly that its zones are outdated at once'
    super(503, 'registrar_busy', `${detail}: try again later`, { headers: { 'retry-after': '10' } })
  }
}

interface Options {
  registrar: RegistrarClient
  clock: Clock
  domain: Domain
  /** Called right before a zone is sent. @throws {HttpError} where this process may not write the domain any more. */
  checkLease?: (() => void) | undefined
}

/** The registrar calls of one batch, with the slots reserved for them and the age of the last read. */
export class BatchCalls implements Disposable {
  readonly #options: Options
  #reservation: Reservation
  #readAt = Number.NEGATIVE_INFINITY

  private constructor(options: Options, reservation: Reservation) {
    this.#options = options
    this.#reservation = reservation
  }

  /** Holds so many slots. @throws 503 `registrar_busy`; nothing is sent then. */
  static async reserve(options: Options, calls: number, reserve: ReserveOptions) {
    return new BatchCalls(options, await options.registrar.quota.reserve(calls, reserve))
  }

  /** Holds slots for so many further calls, before everything else, so that no later call of them waits. */
  async ensure(calls: number): Promise<void> {
    if (this.#reservation.unused >= calls) return
    this.#reservation.release()
    this.#reservation = await this.#options.registrar.quota.reserve(calls, {
      priority: 'follow-up',
    })
  }

  get isFresh(): boolean {
    return this.#options.clock.now() - this.#readAt <= maxReadAgeMs
  }

  read(): Promise<Zone> {
    const { registrar, clock, domain } = this.#options
    return registrar.zone(domain, this.#reservation, () => {
      this.#readAt = clock.now()
    })
  }

  /** The email type by getInfo; undefined where that does not say. */
  emailType(): Promise<string | undefined> {
    const { registrar, domain } = this.#options
    return registrar.emailType(domain, this.#reservation)
  }

  /** @throws {CallFailed}, {StaleRead} if the zone was read more than a second before the moment of sending. */
  replace(zone: Zone): Promise<void> {
    const { registrar, domain, checkLease } = this.#options
    return registrar.replaceZone(domain, zone, this.#reservation, () => {
      if (!this.isFresh) throw new StaleRead()
      checkLease?.()
    })
  }

  [Symbol.dispose]() {
    this.#reservation.release()
  }
}
