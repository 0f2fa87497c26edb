import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const memory = join(import.meta.dirname, '../src/memory.ts')

// Prints the largest size of the young generation in MiB, in which many objects survive. Its growth is adjusted after
// a collection, when the event loop turns: once in each round.
const script = (isGrowing: boolean) => `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { setTimeout as wait } from 'node:timers/promises'
  const { growYoungGeneration, keepYoungGenerationSmall } = await import(${JSON.stringify(memory)})
  keepYoungGenerationSmall()
  if (${isGrowing}) growYoungGeneration()
  const live = []
  let largest = 0
  for (let round = 0; round < 15; round += 1) {
    for (let at = 0; at < 20_000; at += 1) live[at] = { round, list: [at] }
    const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
    largest = Math.max(largest, space.space_size / 2) // One of its halves is in use.
    await wait(60)
  }
  process.stdout.write(String(largest / 1_048_576))
`

async function largestYoungGeneration(isGrowing: boolean): Promise<number> {
  const args = ['--input-type=module', '--eval', script(isGrowing)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return Number(stdout)
}

test('the young generation stays small during the start', async () => {
  expect(await largestYoungGeneration(false)).toBeLessThan(3)
})

test('after the start it grows, but not without bound', async () => {
  const largest = await largestYoungGeneration(true)

  expect(largest).toBeGreaterThan(3)
  // Without a bound it has more than 7 MiB.
  expect(largest).toBeLessThan(6)
})
