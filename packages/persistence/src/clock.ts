import { setImmediate as nextIteration } from 'node:timers/promises'

export interface Timer {
  cancel(): void
}

/** Source of time and timers, replaceable by tests. */
export interface Clock {
  /**
   * Monotonic time in whole milliseconds since 1970, based on the system clock at process start. Later changes of the
   * system clock affect neither durations nor deadlines.
   */
  now(): number
  /** Calls `callback` once after `milliseconds`. A pending timer does not keep the process alive. */
  setTimer(callback: () => void, milliseconds: number): Timer
}

// Milliseconds. Node fires timers with a longer delay at once.
const longestTimer = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Math.round(performance.timeOrigin + performance.now()),
  setTimer: (callback, milliseconds) => {
    const timer = setTimeout(callback, Math.min(milliseconds, longestTimer)).unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

const sliceMs = 20

/** Yields to the event loop now and then during long work: `await` the returned function between the steps. */
export function slices(): () => Promise<void> | undefined {
  let until = performance.now() + sliceMs
  return () => {
    if (performance.now() < until) return undefined
    return nextIteration().then(() => {
      until = performance.now() + sliceMs
    })
  }
}

export const delay = (clock: Clock, milliseconds: number) =>
  new Promise<void>((resolve) => {
    clock.setTimer(resolve, milliseconds)
  })
