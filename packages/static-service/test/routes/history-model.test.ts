import fc from 'fast-check'
import { test } from 'vitest'
import { historyAction } from '../support/history-actions.ts'
import { HistoryTester } from '../support/history-tester.ts'

// MODEL_RUNS=200 is the long form (npm run faults).
const runs = Number(process.env.MODEL_RUNS ?? 1)

test('the history has every state that a plain list of all changes has, and the disk nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(historyAction, { minLength: 30, maxLength: 40 }), async (actions) => {
      await using tester = await HistoryTester.start()
      for (const each of actions) await tester.act(each)
      await tester.compare()
      await tester.restart({ keepDays: 0, keepVersions: 0, isLater: true }, 1)
      await tester.compare()
      await tester.compareDisk()
    }),
    { numRuns: runs, endOnFailure: true },
  )
}, 3_600_000)
