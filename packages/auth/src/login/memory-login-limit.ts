import { AttemptCounter } from './attempt-counter.ts'
import {
  type Attempt,
  keysOf,
  type Lockout,
  type LoginLimit,
  type LoginLimits,
  type OnLockout,
} from './login-limit.ts'

interface Counters {
  pairs: AttemptCounter
  usernames: AttemptCounter
}

/** Login limits of one process. */
export class MemoryLoginLimit implements LoginLimit {
  readonly #networks: AttemptCounter
  readonly #known: Counters
  readonly #unknown: Counters
  readonly #onLockout: OnLockout

  constructor(limits: LoginLimits, now: () => number, onLockout: OnLockout) {
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

  async secondsToWait(attempt: Attempt) {
    return this.#secondsToWait(attempt)
  }

  async run(attempt: Attempt, verify: () => Promise<boolean>) {
    const secondsToWait = this.#secondsToWait(attempt)
    if (secondsToWait > 0) return { secondsToWait, isRight: false }
    const scopes = this.#scopesOf(attempt)
    const running = scopes.map(([lockout, counter, key]) => [lockout, counter.begin(key)] as const)
    try {
      const isRight = await verify()
      if (isRight) this.#resetPair(attempt)
      else this.#recordFailure(attempt, running)
      return { secondsToWait, isRight }
    } finally {
      for (const [, { end }] of running) end()
    }
  }

  #secondsToWait(attempt: Attempt): number {
    const waits = this.#scopesOf(attempt).map(([, counter, key]) => counter.waitMs(key))
    return Math.ceil(Math.max(...waits) / 1000)
  }

  #resetPair(attempt: Attempt) {
    this.#countersOf(attempt).pairs.reset(keysOf(attempt)['username and network'])
  }

  #recordFailure(attempt: Attempt, running: (readonly [Lockout, { fail: () => boolean }])[]) {
    for (const [lockout, { fail }] of running) if (fail()) this.#onLockout(attempt, lockout)
  }

  #scopesOf(attempt: Attempt): [Lockout, AttemptCounter, string][] {
    const { pairs, usernames } = this.#countersOf(attempt)
    const keys = keysOf(attempt)
    return [
      ['username and network', pairs, keys['username and network']],
      ['network', this.#networks, keys.network],
      ['username', usernames, keys.username],
    ]
  }

  #countersOf = ({ isUser }: Attempt) => (isUser ? this.#known : this.#unknown)
}
