import { onTestFinished } from 'vitest'

/** How many times faster hurried timers are. */
export const hurry = 30

/**
 * Makes the timers that start from now on run out in a thirtieth of their time, until the test ends. For time limits that
 * must be long until then: a machine that stands still would exceed short ones too early.
 */
export function hurryTimers(): void {
  const { setTimeout } = globalThis
  const hurried = (run: () => void, ms = 0, ...args: []) => setTimeout(run, ms / hurry, ...args)
  globalThis.setTimeout = Object.assign(hurried, setTimeout)
  onTestFinished(() => {
    globalThis.setTimeout = setTimeout
  })
}
