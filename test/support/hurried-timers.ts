import { onTestFinished } from 'vitest'

/** How many times faster hurried timers are. */
export const hurry = 30

/**
 * Makes the timers that start from now on run out in a thirtieth of their time, until the returned function is called or
 * the test ends. For time limits that must be long before and after: a machine that stands still would exceed short ones.
 */
export function hurryTimers(): () => void {
  const { setTimeout } = globalThis
  const hurried = (run: () => void, ms = 0, ...args: []) => setTimeout(run, ms / hurry, ...args)
  globalThis.setTimeout = Object.assign(hurried, setTimeout)
  const calm = () => {
    globalThis.setTimeout = setTimeout
  }
  onTestFinished(calm)
  return calm
}
