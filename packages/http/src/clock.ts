/** A timer that has not fired yet. */
export interface Timer {
  cancel(): void
}

/** Time as a service measures it, so that tests can move it. */
export interface Clock {
  /**
   * Whole milliseconds since 1970 by the system clock at the start of this process. Monotonic: setting the system
   * clock changes neither durations nor deadlines.
   */
  now(): number
  /** Calls back once, after so many milliseconds. A pending timer does not keep the process alive. */
  setTimer(callback: () => void, milliseconds: number): Timer
}

export const steadyNow = () => Math.round(performance.timeOrigin + performance.now())

// Node fires at once what is due later than this.
const longestTimer = 2 ** 31 - 1

export const systemClock: Clock = {
  now: steadyNow,
  setTimer: (callback, milliseconds) => {
    const timer = setTimeout(callback, Math.min(milliseconds, longestTimer)).unref()
    return { cancel: () => clearTimeout(timer) }
  },
}

/** Resolves after so many milliseconds of this clock. */
export const delay = (clock: Clock, milliseconds: number) =>
  new Promise<void>((resolve) => {
    clock.setTimer(resolve, milliseconds)
  })
