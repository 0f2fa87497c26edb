import { expect, test } from 'vitest'
import { createHashQueue, verifyPassword } from '../../src/login/password.ts'
import { start } from '../support/start.ts'

const limits = { windowMs: 60_000, perPair: 10, perNetwork: 30, perUsername: 200 }

/** A verification that waits until it is released, and records those that have begun. */
function makeGate() {
  const gate = Promise.withResolvers<void>()
  const begun: string[] = []
  const verify = async (phc: string, password: string) => {
    begun.push(phc)
    await gate.promise
    return verifyPassword(phc, password)
  }
  return { verify, begun, open: gate.resolve }
}

test('after ten failed logins the right password is refused, too', async () => {
  await using service = await start()

  const wrong = await repeat(10, () => service.login('adam', 'not it'))
  const right = await service.login('adam')

  expect(wrong.map(({ status }) => status)).toEqual(Array(10).fill(401))
  expect(right).toMatchObject({ status: 429, code: 'too_many_requests' })
  expect(right.headers.get('retry-after')).toBe('900')
})

test('Retry-After names the second in which the next attempt is allowed', async () => {
  await using service = await start({ loginLimits: { ...limits, perPair: 2 } })
  await service.login('adam', 'first')
  service.clock.ms += 10_500
  await service.login('adam', 'second')

  const early = await service.login('adam')
  service.clock.ms += 49_499
  const almost = await service.login('adam')
  service.clock.ms += 1
  const then = await service.login('adam')

  expect(early.headers.get('retry-after')).toBe('50')
  expect(almost).toMatchObject({ status: 429 })
  expect(almost.headers.get('retry-after')).toBe('1')
  expect(then.status).toBe(200)
})

test('rate-limited logins are rejected without hashing', async () => {
  let hashes = 0
  const verify = async () => {
    hashes += 1
    return false
  }
  await using service = await start({ verify })

  await repeat(30, () => service.login('adam', 'not it'))

  expect(hashes).toBe(10)
})

test('a rate-limited login takes no place in the queue of hashes, and gets 429 while that is full', async () => {
  const hashes = createHashQueue()
  await using service = await start({ hashes, loginLimits: { ...limits, perPair: 1 } })
  await service.login('adam', 'not it')
  const gate = Promise.withResolvers<void>()
  const held = Array.from({ length: 34 }, () => hashes(() => gate.promise))

  const answers = [await service.login('adam'), await service.login('edda')]
  gate.resolve()
  await Promise.all(held)

  expect(answers.map(({ status }) => status)).toEqual([429, 503])
})

test('an unknown username is limited like a known one', async () => {
  await using service = await start({ loginLimits: { ...limits, perPair: 1 } })
  await service.login('nobody', 'not it')

  const answer = await service.login('nobody', 'not it')

  expect(answer).toMatchObject({ status: 429, code: 'too_many_requests' })
})

test('by default a network has 30 failed logins and a username 200', async () => {
  await using service = await start({ trustProxy: true, verify: async () => false })
  const statusesOf = async (times: number, run: (index: number) => ReturnType<typeof service.login>) =>
    (await repeat(times, run)).map(({ status }) => status)

  const network = await statusesOf(31, (index) => service.login(`x${index}`, 'wrong', '192.0.2.1'))
  const username = await statusesOf(201, (index) => service.login('adam', 'wrong', `198.51.100.${index}`))

  expect(network).toEqual([...Array(30).fill(401), 429])
  expect(username).toEqual([...Array(200).fill(401), 429])
})

test('ten failed logins from another network do not lock a user out', async () => {
  await using service = await start({ trustProxy: true })
  await repeat(12, () => service.login('adam', 'wrong', '203.0.113.7'))

  const answer = await service.login('adam', undefined, '192.0.2.1')

  expect(answer.status).toBe(200)
})

test('a port in X-Forwarded-For does not make another client', async () => {
  await using service = await start({ trustProxy: true })

  const v4 = await repeat(11, (index) => service.login('adam', 'x', `192.0.2.1:${4000 + index}`))
  const v6 = await repeat(11, (index) => service.login('edda', 'x', `[2001:db8::1]:${4000 + index}`))

  expect([v4.at(-1)?.status, v6.at(-1)?.status]).toEqual([429, 429])
})

test('a lockout is logged once as a warning, and names the user only if there is one', async () => {
  await using service = await start({ loginLimits: { ...limits, perPair: 2 } })
  await repeat(4, () => service.login('adam', 'wrong'))
  await repeat(4, () => service.login('my-password', 'wrong'))

  const warnings = service.lines().filter(({ msg }) => msg === 'login locked')

  expect(warnings).toMatchObject([
    { level: 'warn', username: 'adam', client: '127.0.0.1', limit: 'username and network' },
    { level: 'warn', client: '127.0.0.1', limit: 'username and network' },
  ])
  expect(JSON.stringify(warnings)).not.toContain('my-password')
})

test('successful logins are not limited', async () => {
  await using service = await start()

  const answers = await Promise.all(Array.from({ length: 30 }, () => service.login('adam')))

  expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200))
})

test('invalid requests are not counted', async () => {
  await using service = await start({ loginLimits: { ...limits, perPair: 1 } })
  await service.login('adam', '')

  const answer = await service.login('adam')

  expect(answer.status).toBe(200)
})

test('concurrent attempts cannot pass the limit', async () => {
  let hashes = 0
  const verify = async (phc: string, password: string) => {
    hashes += 1
    return verifyPassword(phc, password)
  }
  await using service = await start({ verify })

  const answers = await Promise.all(Array.from({ length: 30 }, () => service.login('adam', 'not it')))

  expect(answers.filter(({ status }) => status === 401)).toHaveLength(10)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(20)
  expect(hashes).toBe(10)
})

test('a failing hash is a server error and does not count', async () => {
  let isBroken = true
  const verify = async () => {
    if (isBroken) throw new Error('out of memory')
    return true
  }
  await using service = await start({ verify, loginLimits: { ...limits, perPair: 1 } })

  const failed = await service.login('adam')
  isBroken = false
  const then = await service.login('adam')

  expect([failed.status, then.status]).toEqual([500, 200])
})

test('two logins are hashed at a time, 32 wait, and further ones get 503', async () => {
  const gate = makeGate()
  await using service = await start({ verify: gate.verify })
  const refused: Awaited<ReturnType<typeof service.login>>[] = []

  const logins = Array.from({ length: 40 }, async () => {
    const answer = await service.login('adam')
    if (answer.status !== 200) refused.push(answer)
    return answer.status
  })
  await expect.poll(() => refused.length).toBe(6)
  const begun = gate.begun.length
  gate.open()
  const statuses = await Promise.all(logins)

  expect(begun).toBe(2)
  expect(refused[0]).toMatchObject({ status: 503, code: 'unavailable' })
  expect(refused[0]?.headers.get('retry-after')).toBe('1')
  expect(statuses.filter((status) => status === 200)).toHaveLength(34)
})

test('other requests are served while hashes run', async () => {
  const gate = makeGate()
  await using service = await start({ verify: gate.verify })
  const login = service.login('adam')
  await expect.poll(() => gate.begun.length).toBe(1)

  const other = await service.call('/open')
  gate.open()

  expect(other.status).toBe(200)
  expect((await login).status).toBe(200)
})

async function repeat<T>(times: number, run: (index: number) => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  for (let count = 0; count < times; count += 1) answers.push(await run(count))
  return answers
}
