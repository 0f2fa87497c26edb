import { isIPv6 } from 'node:net'
import { HttpError } from '../http-error.ts'

const maxNetworks = 10_000
const windowMs = 60_000

/** Rate limit for attempts in a minute by client network, in process memory. */
export class AttemptLimit {
  readonly #max: number
  readonly #now: () => number
  readonly #networks = new Map<string, { count: number; until: number }>()

  /** `now` is in milliseconds. */
  constructor(max: number, now = () => performance.now()) {
    this.#max = max
    this.#now = now
  }

  /** @throws {HttpError} 429 after too many attempts. */
  check(address: string): void {
    const attempts = this.#recent(clientNetwork(address))
    if (attempts && attempts.count >= this.#max) throw tooManyFailures(Math.ceil((attempts.until - this.#now()) / 1000))
  }

  add(address: string): void {
    const network = clientNetwork(address)
    const attempts = this.#recent(network)
    if (attempts) {
      attempts.count += 1
      return
    }
    // Delete and re-insert: the first key of the Map is the oldest.
    this.#networks.delete(network)
    const [oldest] = this.#networks.keys()
    if (this.#networks.size >= maxNetworks && oldest !== undefined) this.#networks.delete(oldest)
    this.#networks.set(network, { count: 1, until: this.#now() + windowMs })
  }

  // Setting the clock back must not extend a window.
  #recent(network: string) {
    const attempts = this.#networks.get(network)
    const leftMs = (attempts?.until ?? 0) - this.#now()
    return leftMs > 0 && leftMs <= windowMs ? attempts : undefined
  }
}

export const tooManyFailures = (retryAfter: number) =>
  new HttpError(429, 'too_many_requests', `Too many attempts: try again in ${retryAfter} seconds`, { retryAfter })

/** The network that one client controls: its IPv4 address, or the /64 of its IPv6 address. */
export function clientNetwork(address: string): string {
  const [, mapped] = /^::ffff:([0-9.]+)$/i.exec(address) ?? []
  if (mapped || !isIPv6(address)) return mapped ?? address
  const [head = '', tail = ''] = address.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail.split(':').filter(Boolean)
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  const groups = [...left, ...zeros, ...right].slice(0, 4)
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
