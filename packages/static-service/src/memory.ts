import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Limits the young generation at startup: otherwise garbage of the start stays in memory. */
export const keepYoungGenerationSmall = () => limitGrowth(1)

/**
 * Lets the young generation grow to 4 MiB. At 1 MiB, requests in progress survive collections: copying them took 20 to 40 %
 * of the CPU time of lists, small uploads and responses that wait for another machine. Without a limit, 64 MiB of
 * written upload chunks would wait for a collection.
 */
export function growYoungGeneration(): void {
  limitGrowth(2)
  // It grows in steps, by collections, and shrinks when the process is idle.
  new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
    // It consists of two halves, of which one is in use.
    limitGrowth((young?.space_size ?? Number.POSITIVE_INFINITY) > maxYoungBytes ? 1 : 2)
  }).observe({ type: 'gc' })
}

const maxYoungBytes = 4 * 1_048_576

// V8 has no setting for the size itself once the process has started.
function limitGrowth(factor: 1 | 2) {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}
