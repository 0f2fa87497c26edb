import type { Reservation, ReserveOptions } from '../../budget/call-quota.ts'
import type { Clock } from '../../clock.ts'
import type { Domain } from '../../dns/domain-name.ts'
import type { Zone } from '../../dns/record.ts'
import type { RegistrarClient } from '../../registrar/client.ts'

// A write is based on a read of the last second: a little less, since the call itself takes time to arrive.
const maxReadAgeMs = 900

/** Thrown at the moment of sending: the zone was read too long ago. Nothing was sent. */
export class StaleRead extends Error {}

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
    return new BatchCalls(options, await options.registrar.reserve(calls, reserve))
  }

  /** Holds slots for so many further calls, before everything else, so that no later call of them waits. */
  async ensure(calls: number): Promise<void> {
    if (this.#reservation.unused >= calls) return
    this.#reservation.release()
    this.#reservation = await this.#options.registrar.reserve(calls, { priority: 'follow-up' })
  }

  /** How many calls can be made without waiting for a slot. */
  get reserved(): number {
    return this.#reservation.unused
  }

  get isFresh(): boolean {
    return this.#options.clock.now() - this.#readAt <= maxReadAgeMs
  }

  async read(): Promise<Zone> {
    const { registrar, clock, domain } = this.#options
    const zone = await registrar.zone(domain, this.#reservation)
    this.#readAt = clock.now()
    return zone
  }

  /** The email type by getInfo; undefined where that does not say. */
  emailType(): Promise<string | undefined> {
    const { registrar, domain } = this.#options
    return registrar.emailType(domain, this.#reservation)
  }

  /** @throws {CallFailed}, {StaleRead} if the zone was read more than a second before the moment of sending. */
  replace(zone: Zone): Promise<void> {
    const { registrar, domain, checkLease } = this.#options
    const use = async () => {
      await this.#reservation.use()
      if (!this.isFresh) throw new StaleRead('the zone was read more than a second ago')
      checkLease?.()
    }
    return registrar.replaceZone(domain, zone, { use })
  }

  [Symbol.dispose]() {
    this.#reservation.release()
  }
}
