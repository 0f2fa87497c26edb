import { afterAll, describe, expect, test } from 'vitest'
import { limitFactories, secondsOf } from '../support/login-limits.ts'

describe.each(limitFactories)('login limits in %s', async (_name, open) => {
  const limits = await open()
  afterAll(() => limits[Symbol.asyncDispose]())

  test('a locked username is free from another network', async () => {
    const { fail, wait, lockouts } = await limits.make()

    await fail('adam', '192.0.2.1', { times: 2 })

    expect([await wait('adam', '192.0.2.1'), await wait('adam', '192.0.2.2')]).toEqual([60, 0])
    expect(lockouts).toEqual(['username and network'])
  })

  test('a network is locked for every username after failures with many', async () => {
    const { fail, wait, lockouts } = await limits.make()

    for (const name of ['a', 'b', 'c', 'd']) await fail(name, '192.0.2.1')

    expect([await wait('adam', '192.0.2.1'), await wait('adam', '192.0.2.2')]).toEqual([60, 0])
    expect(lockouts).toEqual(['network'])
  })

  test('a username is locked everywhere after failures from many networks', async () => {
    const { fail, wait, lockouts } = await limits.make()

    for (let host = 1; host <= 6; host += 1) await fail('adam', `192.0.2.${host}`)

    expect([await wait('adam', '192.0.2.99'), await wait('edda', '192.0.2.99')]).toEqual([60, 0])
    expect(lockouts).toEqual(['username'])
  })

  test('a success resets the pair of username and network, and nothing else', async () => {
    const { fail, succeed, wait } = await limits.make()
    await fail('adam', '192.0.2.1')
    await fail('adam', '192.0.2.2')

    await succeed('adam', '192.0.2.1')
    await fail('adam', '192.0.2.1')
    await fail('adam', '192.0.2.2')

    expect([await wait('adam', '192.0.2.1'), await wait('adam', '192.0.2.2')]).toEqual([0, 60])
    await fail('edda', '192.0.2.1', { times: 2 })
    expect(await wait('vera', '192.0.2.1')).toBe(60)
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
    const { fail, wait } = await limits.make()

    await fail('adam', first, { times: 2 })

    expect(await wait('adam', second)).toBe(seconds)
  })

  test('running attempts count as failures until they end, or for good after a minute', async () => {
    const { advance, limit, wait } = await limits.make({ perPair: 1, windowMs: 120_000 })
    const gate = Promise.withResolvers<boolean>()
    const attempt = { username: 'adam', isUser: true, address: '192.0.2.1' }

    const begun = Promise.withResolvers<void>()
    const running = limit.run(attempt, () => {
      begun.resolve()
      return gate.promise
    })
    await begun.promise
    const meanwhile = await wait('adam', '192.0.2.1')
    await advance(60_000)
    const afterMinute = await wait('adam', '192.0.2.1')
    gate.resolve(true)
    await running

    expect([meanwhile, afterMinute, await wait('adam', '192.0.2.1')]).toEqual([1, 60, 0])
  })

  test('a new user does not wait for the failures that its name had before', async () => {
    const { limit, wait } = await limits.make({ perPair: 1, perUsername: 1 })
    const attempt = { username: 'adam', isUser: false, address: '192.0.2.1' }

    expect(await limit.run(attempt, async () => false)).toBe(false)

    expect(await wait('adam', '192.0.2.1')).toBe(0)
  })

  test('failures expire with the window', async () => {
    const { advance, fail, wait } = await limits.make()
    await fail('adam', '192.0.2.1', { times: 2 })

    await advance(60_000)

    expect(await wait('adam', '192.0.2.1')).toBe(0)
  })

  test('an attempt that must wait is not made', async () => {
    const { limit, fail } = await limits.make()
    await fail('adam', '192.0.2.1', { times: 2 })
    let isMade = false

    const attempt = limit.run({ username: 'adam', isUser: true, address: '192.0.2.1' }, async () => (isMade = true))

    expect(await secondsOf(attempt)).toBeGreaterThan(1)
    expect(isMade).toBe(false)
  })

  test('an attempt that throws does not count', async () => {
    const { limit, wait } = await limits.make({ perPair: 1 })
    const attempt = { username: 'adam', isUser: true, address: '192.0.2.1' }

    const failing = limit.run(attempt, () => Promise.reject(new Error('no memory')))

    await expect(failing).rejects.toThrow('no memory')
    expect(await wait('adam', '192.0.2.1')).toBe(0)
  })
})
