import type { Database } from 'better-sqlite3'
import { steadyNow } from '../clock.ts'
import { registrarBusy } from '../errors.ts'

export interface Limit {
  calls: number
  window: 'minute' | 'hour' | 'day'
}

export type Priority = 'write' | 'read'

const milliseconds = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/** Reads `20/minute,700/hour,8000/day`; undefined where it is not of that form. */
export function readRate(text: string): Limit[] | undefined {
  const limits = text
    .split(',')
    .map((part) => /^([1-9][0-9]{0,6})\/(minute|hour|day)$/.exec(part.trim()))
  if (!limits.every((match) => match !== null)) return undefined
  // The expression admits only these windows.
  return limits.map(([, calls, window]) => ({
    calls: Number(calls),
    window: window as Limit['window'],
  }))
}

interface Waiter {
  priority: Priority
  since: number
  go: (error?: Error) => void
}

/**
 * The calls that the registrar allows, in sliding windows, remembered across restarts. A call that finds none left
 * waits its turn, writes before reads, and gives up after `maxWait` milliseconds with 503 `registrar_busy`.
 */
export class CallQuota {
  readonly #limits: Limit[]
  readonly #maxWait: number
  readonly #now: () => number
  readonly #remember: (at: number) => void
  #calls: number[]
  #waiters: Waiter[] = []
  #blockedUntil = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: {
    limits: Limit[]
    database: Database
    maxWait?: number
    now?: () => number
  }) {
    this.#limits = options.limits
    this.#maxWait = options.maxWait ?? 10_000
    this.#now = options.now ?? steadyNow
    const longest = Math.max(...options.limits.map((limit) => milliseconds[limit.window]))
    const forget = options.database.prepare<[number]>('delete from calls where at <= ?')
    const insert = options.database.prepare<[number]>('insert into calls (at) values (?)')
    this.#remember = options.database.transaction((at: number) => {
      forget.run(at - longest)
      insert.run(at)
    })
    this.#calls = options.database
      .prepare<[number], number>('select at from calls where at > ? order by at')
      .pluck()
      .all(this.#now() - longest)
      // A clock that was set back must not make calls of the future block for ever.
      .map((at) => Math.min(at, this.#now()))
  }

  /** Resolves when a call may be made, which is then counted. */
  async take(priority: Priority): Promise<void> {
    if (this.#waiters.length > 0 || this.#nextSlot() > this.#now()) return this.#wait(priority)
    this.#count()
  }

  /** The registrar said that it had too many calls, whatever we counted: no call for so long. */
  pause(pauseMilliseconds: number) {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#now() + pauseMilliseconds)
  }

  /** What is left of each window, and when its next call is free again. */
  left(): { window: Limit['window']; limit: number; left: number; nextFreeAt: Date | undefined }[] {
    const now = this.#now()
    return this.#limits.map(({ calls, window }) => {
      const inside = this.#calls.filter((at) => at > now - milliseconds[window])
      const oldest = inside[0]
      return {
        window,
        limit: calls,
        left: Math.max(0, calls - inside.length),
        nextFreeAt: oldest === undefined ? undefined : new Date(oldest + milliseconds[window]),
      }
    })
  }

  /** How many calls wait for a slot. */
  get waiting(): number {
    return this.#waiters.length
  }

  #wait(priority: Priority): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const go = (error?: Error) => (error ? reject(error) : resolve())
    this.#waiters.push({ priority, since: this.#now(), go })
    this.#schedule()
    return promise
  }

  #schedule() {
    clearTimeout(this.#timer)
    for (let next = this.#first(); next; next = this.#first()) {
      const slot = this.#nextSlot()
      if (slot > this.#now()) {
        this.#timer = setTimeout(() => this.#schedule(), slot - this.#now())
        return
      }
      this.#drop(next)
      this.#count()
      next.go()
    }
  }

  // Whoever waits longer than is allowed until the next slot is told so at once, not after the wait.
  #first(): Waiter | undefined {
    const now = this.#now()
    const slot = this.#nextSlot()
    for (const waiter of this.#waiters.filter(
      (each) => Math.max(slot, now) > each.since + this.#maxWait,
    )) {
      this.#drop(waiter)
      waiter.go(registrarBusy(Math.max(1, Math.ceil((slot - now) / 1000))))
    }
    return this.#waiters.find((each) => each.priority === 'write') ?? this.#waiters[0]
  }

  #count() {
    const at = this.#now()
    this.#calls.push(at)
    this.#remember(at)
  }

  #drop(waiter: Waiter) {
    this.#waiters = this.#waiters.filter((each) => each !== waiter)
  }

  // The first moment at which every window has room.
  #nextSlot(): number {
    const now = this.#now()
    const longest = Math.max(...this.#limits.map((limit) => milliseconds[limit.window]))
    while (this.#calls[0] !== undefined && this.#calls[0] <= now - longest) this.#calls.shift()
    const free = this.#limits.map(({ calls, window }) => {
      const blocking = this.#calls[this.#calls.length - calls]
      return blocking === undefined ? 0 : blocking + milliseconds[window]
    })
    return Math.max(this.#blockedUntil, ...free)
  }
}
