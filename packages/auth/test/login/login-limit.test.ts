import { expect, test } from 'vitest'
import { LoginLimit } from '../../src/login/login-limit.ts'

function makeLimit(attempts = 2) {
  const clock = { ms: 0 }
  const limit = new LoginLimit({ attempts, windowMs: 60_000, now: () => clock.ms })
  const fail = (username: string, address: string, isUser = false) =>
    limit.count({ username, isUser, address }, async () => false)
  const wait = (username: string, address: string, isUser = false) =>
    limit.secondsToWait({ username, isUser, address })
  return { clock, limit, fail, wait }
}

test.each([
  ['192.0.2.1', '192.0.2.1', 60],
  ['192.0.2.1', '192.0.2.2', 0],
  ['192.0.2.1', '::ffff:192.0.2.1', 60],
  ['2001:db8::1', '2001:db8::2', 60],
  ['2001:db8:0:0:aaaa::1', '2001:db8::2', 60],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::', 60],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:3::', 0],
  ['::1', '2001:db8::1', 0],
])('after the limit from %s, %s waits %i seconds', async (first, second, seconds) => {
  const { fail, wait } = makeLimit()

  await fail('a', first)
  await fail('b', first)

  expect(wait('c', second)).toBe(seconds)
})

test('a flood of invented names does not push out the count of a user', async () => {
  const { fail, wait } = makeLimit()
  await fail('adam', '192.0.2.1', true)
  await fail('adam', '192.0.2.1', true)

  for (let count = 0; count < 10_001; count += 1) await fail(`x${count}`, `10.0.0.${count}`)

  expect(wait('adam', '192.0.2.2', true)).toBe(60)
})

test('of very many names and addresses the oldest are forgotten first', async () => {
  const { fail, wait } = makeLimit(1)

  for (let count = 0; count < 10_001; count += 1) await fail(`x${count}`, `y${count}`)

  expect([wait('x0', 'z'), wait('x1', 'z'), wait('z', 'y0'), wait('z', 'y1')]).toEqual([
    0, 60, 0, 60,
  ])
})

test('a name that is tried again is not the oldest any more', async () => {
  const { fail, wait } = makeLimit(2)
  await fail('x0', 'a')

  for (let count = 1; count < 10_000; count += 1) await fail(`x${count}`, `y${count}`)
  await fail('x0', 'b')
  await fail('new', 'c')

  expect(wait('x0', 'd')).toBe(60)
})

test('attempts that run count as wrong until they are over', async () => {
  const { limit, wait } = makeLimit(1)
  const gate = Promise.withResolvers<boolean>()
  const attempt = { username: 'adam', isUser: true, address: '192.0.2.1' }

  const running = limit.count(attempt, () => gate.promise)
  const meanwhile = wait('adam', '192.0.2.2', true)
  gate.resolve(true)
  await running

  expect([meanwhile, wait('adam', '192.0.2.2', true)]).toEqual([1, 0])
})

test('wrong logins are forgotten after the window', async () => {
  const { clock, fail, wait } = makeLimit(1)
  await fail('adam', '192.0.2.1')

  clock.ms = 60_000

  expect(wait('adam', '192.0.2.1')).toBe(0)
})
