import { expect, test } from 'vitest'
import { makeMemoryLimit } from '../support/login-limits.ts'

test('a flood of invented usernames does not evict the count of a user', async () => {
  const { fail, wait } = await makeMemoryLimit()
  await fail('adam', '192.0.2.1', { times: 2 })

  for (let count = 0; count < 10_001; count += 1)
    await fail(`x${count}`, `10.0.0.${count}`, { isUser: false })

  expect(await wait('adam', '192.0.2.1')).toBe(60)
})

test('of more than 10,000 counts the oldest is dropped first', async () => {
  const { fail, wait } = await makeMemoryLimit({ perPair: 1 })

  for (let count = 0; count < 10_001; count += 1) await fail(`x${count}`, `y${count}`)

  expect([await wait('x0', 'y0'), await wait('x1', 'y1')]).toEqual([0, 60])
})
