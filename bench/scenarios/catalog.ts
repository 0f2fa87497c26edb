import type { Finding } from '../harness/finding.ts'
import { measure } from './catalog-worker.ts'

/** Catalog queries at a million files, compared with ten thousand; in this process, without HTTP. */
export async function measureCatalog(): Promise<Finding[]> {
  const few = await measure(10_000)
  const many = await measure(1_000_000)
  return Object.entries(many).flatMap(([query, { p50, p99 }]): Finding[] => {
    const work = `catalog of 1,000,000 files: ${query}`
    const other = { name: '10,000 files', figures: [few[query]?.p50 ?? Number.NaN] }
    // With this many nodes the response itself takes the time.
    const isGoal = query !== 'tree, 10,000 nodes'
    return [
      {
        work,
        unit: 'ms, p50',
        ours: [p50],
        other,
        ...(isGoal && { goal: { of: 'ratio', atMost: 2 } }),
      },
      { work, unit: 'ms, p99', ours: [p99], ...(isGoal && { goal: { of: 'figure', atMost: 10 } }) },
    ]
  })
}
