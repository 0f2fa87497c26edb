import type { Finding } from '../harness/finding.ts'
import { measure } from './catalog-worker.ts'

/** The questions of the catalog at a million files beside the same at ten thousand; in this process, without HTTP. */
export async function askCatalog(): Promise<Finding[]> {
  const few = await measure(10_000)
  const many = await measure(1_000_000)
  return Object.entries(many).flatMap(([question, { p50, p99 }]): Finding[] => {
    const work = `catalog of 1,000,000 files: ${question}`
    const other = { name: '10,000 files', figures: [few[question]?.p50 ?? Number.NaN] }
    // So many nodes are no level of a tree: the answer itself is what takes the time.
    const isGoal = question !== 'tree, 10,000 nodes'
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
