import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '@domains-and-files/http'

interface Pending {
  at: number
  callback: () => void
}

/** What has the same time as a clock. */
export interface Follower {
  /** Called with each new time, before what is due then. */
  move: (now: number) => Promise<void>
  /** Whether it does nothing now. */
  isQuiet: () => boolean
}

/** A clock that stands still until a test moves it. Service and sandbox can share one: see `start`. */
export class FakeClock implements Clock {
  #now: number
  #pending: Pending[] = []
  readonly #followers = new Set<Follower>()

  constructor(now = 1_800_000_000_000) {
    this.#now = now
  }

  // Whole milliseconds, as of the system's clock: timers may be due between them.
  readonly now = () => Math.round(this.#now)

  readonly setTimer = (callback: () => void, milliseconds: number) => {
    const pending = { at: this.#now + milliseconds, callback }
    this.#pending.push(pending)
    return {
      cancel: () => {
        this.#pending = this.#pending.filter((each) => each !== pending)
      },
    }
  }

  /** Fires what is due in its order, each at its own time, and lets its consequences in this process happen. */
  async advance(milliseconds: number) {
    const end = this.#now + milliseconds
    for (let next = this.#due(end); next; next = this.#due(end)) {
      await this.#moveTo(Math.max(this.#now, next.at))
      this.#pending = this.#pending.filter((each) => each !== next)
      next.callback()
      await turn()
    }
    await this.#moveTo(end)
    await turn()
  }

  /** Passes so much time at once, as a machine that slept does: what was due meanwhile fires once, at the end. */
  async leap(milliseconds: number) {
    await this.#moveTo(this.#now + milliseconds)
    await this.advance(0)
  }

  /** Returns what ends it. */
  follow(follower: Follower) {
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }

  /** Whether all followers do nothing now. */
  isQuiet(): boolean {
    return [...this.#followers].every((follower) => follower.isQuiet())
  }

  /** Advances to the next timer; does nothing if there is none. */
  async advanceToNext() {
    const next = this.#due(Number.POSITIVE_INFINITY)
    if (next) await this.advance(Math.max(0, next.at - this.#now))
  }

  async #moveTo(now: number) {
    this.#now = now
    for (const follower of this.#followers) await follower.move(now)
  }

  #due(end: number): Pending | undefined {
    return this.#pending.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
  }
}
