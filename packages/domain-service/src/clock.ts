import { setImmediate as nextIteration } from 'node:timers/promises'

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
