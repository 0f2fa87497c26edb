import { isIPv6 } from 'node:net'
import { LRUCache, type Perf } from 'lru-cache'
import { HttpError } from '../http-error.ts'

// An entry is stale a millisecond after this.
const windowMs = 60_000 - 1

/** Rate limit for attempts in a minute by client network, in process memory. */
export class AttemptLimit {
  readonly #max: number
  readonly #attempts: LRUCache<string, { count: number }>

  /** `clock`: monotonic, since setting a clock back must not extend a window. */
  constructor(max: number, clock: Perf = performance) {
    this.#max = max
    // By size: with `max` it would allocate room for all at once.
    const size = { maxSize: 10_000, sizeCalculation: () => 1 }
    this.#attempts = new LRUCache({ ...size, ttl: windowMs, ttlResolution: 0, perf: clock })
  }

  /** @throws {HttpError} 429 after too many attempts. */
  check(address: string): void {
    const network = clientNetwork(address)
    if ((this.#attempts.get(network)?.count ?? 0) < this.#max) return
    throw tooManyFailures(Math.ceil((this.#attempts.getRemainingTTL(network) + 1) / 1000))
  }

  add(address: string): void {
    const network = clientNetwork(address)
    const attempts = this.#attempts.get(network)
    if (attempts) attempts.count += 1
    else this.#attempts.set(network, { count: 1 })
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
