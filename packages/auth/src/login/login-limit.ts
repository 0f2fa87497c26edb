import { isIPv6 } from 'node:net'

export interface LoginLimitOptions {
  attempts: number
  windowMs: number
  now: () => number
}

interface Tally {
  /** When the wrong logins were, oldest first. */
  wrong: number[]
  running: number
}

/** Who tries to log in: a name, whether there is such a user, and the address the attempt comes from. */
export interface Attempt {
  username: string
  isUser: boolean
  address: string
}

/**
 * Counts wrong logins, for each name and for each client address. Names that are no user's are counted like the
 * others, but apart from them: a flood of invented names cannot push out the count of a real one.
 */
export class LoginLimit {
  readonly #options: LoginLimitOptions
  readonly #users: Tallies
  readonly #strangers: Tallies
  readonly #addresses: Tallies

  constructor(options: LoginLimitOptions) {
    this.#options = options
    this.#users = new Tallies(options)
    this.#strangers = new Tallies(options)
    this.#addresses = new Tallies(options)
  }

  /** Seconds until this attempt may be made; 0 if it may be made now. */
  secondsToWait(attempt: Attempt): number {
    const waits = this.#talliesOf(attempt).map(([tallies, key]) => tallies.waitMs(key))
    return Math.ceil(Math.max(...waits) / 1000)
  }

  /**
   * Makes an attempt that may be made now. While it runs it counts as wrong, so that attempts at the same time cannot
   * pass the limit together; a right one then clears its name, though not its address, and one that throws counts not.
   */
  async count(attempt: Attempt, verify: () => Promise<boolean>): Promise<boolean> {
    const tallies = this.#talliesOf(attempt).map(([tallies, key]) => tallies.begin(key))
    try {
      const isRight = await verify()
      if (isRight) this.#nameOf(attempt).forget(attempt.username)
      else for (const tally of tallies) tally.wrong.push(this.#options.now())
      return isRight
    } finally {
      for (const tally of tallies) tally.running -= 1
    }
  }

  #talliesOf(attempt: Attempt): [Tallies, string][] {
    return [
      [this.#nameOf(attempt), attempt.username],
      [this.#addresses, networkOf(attempt.address)],
    ]
  }

  #nameOf = ({ isUser }: Attempt) => (isUser ? this.#users : this.#strangers)
}

const mostTallies = 10_000

class Tallies {
  readonly #options: LoginLimitOptions
  // Oldest first: a key that is used again moves to the end.
  readonly #byKey = new Map<string, Tally>()

  constructor(options: LoginLimitOptions) {
    this.#options = options
  }

  waitMs(key: string): number {
    const tally = this.#byKey.get(key)
    if (!tally) return 0
    this.#dropExpired(tally)
    const excess = tally.wrong.length + tally.running - this.#options.attempts
    if (excess < 0) return 0
    const frees = tally.wrong[excess]
    // Only attempts that still run stand in the way: they are over in a moment.
    if (frees === undefined) return 1000
    return frees + this.#options.windowMs - this.#options.now()
  }

  /** The tally of a key, with one attempt more that runs; made if there is none, and the oldest ones make room. */
  begin(key: string): Tally {
    const tally = this.#byKey.get(key) ?? { wrong: [], running: 0 }
    tally.running += 1
    this.#byKey.delete(key)
    this.#byKey.set(key, tally)
    for (const [oldest, { wrong, running }] of this.#byKey) {
      const isOver = running === 0 && !wrong.some((time) => this.#isRecent(time))
      if (!isOver && this.#byKey.size <= mostTallies) break
      this.#byKey.delete(oldest)
    }
    return tally
  }

  forget(key: string) {
    const tally = this.#byKey.get(key)
    if (tally) tally.wrong = []
  }

  #dropExpired(tally: Tally) {
    tally.wrong = tally.wrong.filter((time) => this.#isRecent(time))
  }

  #isRecent = (time: number) => time + this.#options.windowMs > this.#options.now()
}

// One client of IPv6 has a whole /64 to change its address in, so all of it counts as one.
function networkOf(address: string): string {
  const [, mapped] = /^::ffff:([0-9.]+)$/i.exec(address) ?? []
  if (mapped || !isIPv6(address)) return mapped ?? address
  const [head = '', tail = ''] = address.split('::')
  const left = head.split(':').filter(Boolean)
  const right = tail.split(':').filter(Boolean)
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}
