import { setImmediate as nextIteration } from 'node:timers/promises'

const sliceMs = 20

/** Lets the event loop go on from time to time during long work: `await` what it returns between the steps. */
export function slices(): () => Promise<void> | undefined {
  let until = performance.now() + sliceMs
  return () => {
    if (performance.now() < until) return undefined
    return nextIteration().then(() => {
      until = performance.now() + sliceMs
    })
  }
}
