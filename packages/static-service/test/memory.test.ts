import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const memory = join(import.meta.dirname, '../src/memory.ts')

// Prints the largest size of the young generation in MiB, in which many objects survive. Its size is adjusted every 50 ms:
// once in each round.
const script = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { setTimeout as wait } from 'node:timers/promises'
  const { limitYoungGeneration } = await import(${JSON.stringify(memory)})
  limitYoungGeneration()
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

test('the young generation grows, but not without bound', async () => {
  const args = ['--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const largest = Number(stdout)

  expect(largest).toBeGreaterThan(3)
  // Without a bound it has more than 7 MiB.
  expect(largest).toBeLessThan(6)
})
