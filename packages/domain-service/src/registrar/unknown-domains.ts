import type { Clock } from '../clock.ts'

const keepMs = 60_000
const maxEntries = 10_000

/** Names that the registrar does not know, per command, for 60 s: repeated requests for them cost no call. */
export class UnknownDomains {
  readonly #clock: Clock
  readonly #until = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  has(command: string, domain: string): boolean {
    const until = this.#until.get(keyOf(command, domain))
    return until !== undefined && until > this.#clock.now()
  }

  add(command: string, domain: string) {
    const key = keyOf(command, domain)
    // Re-inserted, so that the map is in order of expiry.
    this.#until.delete(key)
    this.#until.set(key, this.#clock.now() + keepMs)
    const [oldest] = this.#until.keys()
    if (this.#until.size > maxEntries && oldest !== undefined) this.#until.delete(oldest)
  }
}

const keyOf = (command: string, domain: string) => `${command} ${domain}`
