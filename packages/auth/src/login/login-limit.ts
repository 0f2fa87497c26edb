import { AttemptCounter } from './attempt-counter.ts'
import { clientNetwork } from './client-network.ts'

/** Maximum failed logins in `windowMs`. */
export interface LoginLimits {
  windowMs: number
  /** For one username from one client network. */
  perPair: number
  /** For one client network, over all usernames. */
  perNetwork: number
  /** For one username, over all networks. */
  perUsername: number
}

export const defaultLoginLimits: LoginLimits = {
  windowMs: 15 * 60_000,
  perPair: 10,
  perNetwork: 30,
  perUsername: 200,
}

export interface Attempt {
  username: string
  /** Whether the username exists. */
  isUser: boolean
  /** The client's IP address. */
  address: string
}

/** Which limit an attempt reached. */
export type Lockout = 'username and network' | 'network' | 'username'

interface Counters {
  pairs: AttemptCounter
  usernames: AttemptCounter
}

/**
 * Limits failed logins so that guessing is slow, while nobody can lock a user out from another network with a few
 * attempts. Unknown usernames are counted apart: a flood of invented names cannot evict the count of a real one.
 */
export class LoginLimit {
  readonly #networks: AttemptCounter
  readonly #known: Counters
  readonly #unknown: Counters
  readonly #onLockout: (attempt: Attempt, lockout: Lockout) => void

  constructor(
    limits: LoginLimits,
    now: () => number,
    onLockout: (attempt: Attempt, lockout: Lockout) => void,
  ) {
    const counter = (max: number) => new AttemptCounter({ max, windowMs: limits.windowMs, now })
    const counters = () => ({
      pairs: counter(limits.perPair),
      usernames: counter(limits.perUsername),
    })
    this.#networks = counter(limits.perNetwork)
    this.#known = counters()
    this.#unknown = counters()
    this.#onLockout = onLockout
  }

  /** Seconds until this attempt is allowed; 0 if it is allowed now. */
  secondsToWait(attempt: Attempt): number {
    const waits = this.#scopesOf(attempt).map(([, counter, key]) => counter.waitMs(key))
    return Math.ceil(Math.max(...waits) / 1000)
  }

  /**
   * Runs an allowed attempt and counts a failure. A success resets the count of its username and network. An attempt
   * that throws does not count.
   */
  async count(attempt: Attempt, verify: () => Promise<boolean>): Promise<boolean> {
    const scopes = this.#scopesOf(attempt)
    const running = scopes.map(([lockout, counter, key]) => [lockout, counter.begin(key)] as const)
    try {
      const isRight = await verify()
      if (isRight) this.#countersOf(attempt).pairs.reset(pairOf(attempt))
      else this.#recordFailure(attempt, running)
      return isRight
    } finally {
      for (const [, { end }] of running) end()
    }
  }

  #recordFailure(attempt: Attempt, running: (readonly [Lockout, { fail: () => boolean }])[]) {
    for (const [lockout, { fail }] of running) if (fail()) this.#onLockout(attempt, lockout)
  }

  #scopesOf(attempt: Attempt): [Lockout, AttemptCounter, string][] {
    const { pairs, usernames } = this.#countersOf(attempt)
    return [
      ['username and network', pairs, pairOf(attempt)],
      ['network', this.#networks, clientNetwork(attempt.address)],
      ['username', usernames, attempt.username],
    ]
  }

  #countersOf = ({ isUser }: Attempt) => (isUser ? this.#known : this.#unknown)
}

// Unambiguous: a network contains no space.
const pairOf = ({ username, address }: Attempt) => `${clientNetwork(address)} ${username}`
