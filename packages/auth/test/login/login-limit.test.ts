import { expect, test } from 'vitest'
import { type Attempt, type Lockout, LoginLimit } from '../../src/login/login-limit.ts'

const few = { windowMs: 60_000, perPair: 2, perNetwork: 4, perUsername: 6 }

function makeLimit(limits: Partial<typeof few> = {}) {
  const clock = { ms: 0 }
  const lockouts: Lockout[] = []
  const limit = new LoginLimit(
    { ...few, ...limits },
    () => clock.ms,
    (_attempt, lockout) => lockouts.push(lockout),
  )
  const attempt = (username: string, address: string, isUser = true): Attempt => ({
    username,
    isUser,
    address,
  })
  const fail = async (username: string, address: string, { times = 1, isUser = true } = {}) => {
    for (let count = 0; count < times; count += 1)
      await limit.count(attempt(username, address, isUser), async () => false)
  }
  const succeed = (username: string, address: string) =>
    limit.count(attempt(username, address), async () => true)
  const wait = (username: string, address: string, isUser = true) =>
    limit.secondsToWait(attempt(username, address, isUser))
  return { clock, limit, lockouts, fail, succeed, wait }
}

test('a locked username is free from another network', async () => {
  const { fail, wait, lockouts } = makeLimit()

  await fail('adam', '192.0.2.1', { times: 2 })

  expect([wait('adam', '192.0.2.1'), wait('adam', '192.0.2.2')]).toEqual([60, 0])
  expect(lockouts).toEqual(['username and network'])
})

test('a network is locked for every username after failures with many', async () => {
  const { fail, wait, lockouts } = makeLimit()

  for (const name of ['a', 'b', 'c', 'd']) await fail(name, '192.0.2.1')

  expect([wait('adam', '192.0.2.1'), wait('adam', '192.0.2.2')]).toEqual([60, 0])
  expect(lockouts).toEqual(['network'])
})

test('a username is locked everywhere after failures from many networks', async () => {
  const { fail, wait, lockouts } = makeLimit()

  for (let host = 1; host <= 6; host += 1) await fail('adam', `192.0.2.${host}`)

  expect([wait('adam', '192.0.2.99'), wait('edda', '192.0.2.99')]).toEqual([60, 0])
  expect(lockouts).toEqual(['username'])
})

test('a success resets the pair of username and network, and nothing else', async () => {
  const { fail, succeed, wait } = makeLimit()
  await fail('adam', '192.0.2.1')
  await fail('adam', '192.0.2.2')

  await succeed('adam', '192.0.2.1')
  await fail('adam', '192.0.2.1')
  await fail('adam', '192.0.2.2')

  expect([wait('adam', '192.0.2.1'), wait('adam', '192.0.2.2')]).toEqual([0, 60])
  await fail('edda', '192.0.2.1', { times: 2 })
  expect(wait('vera', '192.0.2.1')).toBe(60)
})

test.each([
  ['192.0.2.1', '192.0.2.1', 60],
  ['192.0.2.1', '192.0.2.2', 0],
  ['192.0.2.1', '::ffff:192.0.2.1', 60],
  ['2001:db8::1', '2001:db8::2', 60],
  ['2001:db8::1', '2001:0DB8:0:0::2', 60],
  ['2001:db8:0:0:aaaa::1', '2001:db8::2', 60],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::', 60],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:3::', 0],
  ['::1', '2001:db8::1', 0],
])('after failures from %s, %s waits %i seconds', async (first, second, seconds) => {
  const { fail, wait } = makeLimit()

  await fail('adam', first, { times: 2 })

  expect(wait('adam', second)).toBe(seconds)
})

test('a flood of invented usernames does not evict the count of a user', async () => {
  const { fail, wait } = makeLimit()
  await fail('adam', '192.0.2.1', { times: 2 })

  for (let count = 0; count < 10_001; count += 1)
    await fail(`x${count}`, `10.0.0.${count}`, { isUser: false })

  expect(wait('adam', '192.0.2.1')).toBe(60)
})

test('of more than 10,000 counts the oldest is dropped first', async () => {
  const { fail, wait } = makeLimit({ perPair: 1 })

  for (let count = 0; count < 10_001; count += 1) await fail(`x${count}`, `y${count}`)

  expect([wait('x0', 'y0'), wait('x1', 'y1')]).toEqual([0, 60])
})

test('running attempts count as failures until they end', async () => {
  const { limit, wait } = makeLimit({ perPair: 1 })
  const gate = Promise.withResolvers<boolean>()
  const attempt = { username: 'adam', isUser: true, address: '192.0.2.1' }

  const running = limit.count(attempt, () => gate.promise)
  const meanwhile = wait('adam', '192.0.2.1')
  gate.resolve(true)
  await running

  expect([meanwhile, wait('adam', '192.0.2.1')]).toEqual([1, 0])
})

test('failures expire with the window', async () => {
  const { clock, fail, wait } = makeLimit()
  await fail('adam', '192.0.2.1', { times: 2 })

  clock.ms = 60_000

  expect(wait('adam', '192.0.2.1')).toBe(0)
})
