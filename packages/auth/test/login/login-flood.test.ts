import { expect, test } from 'vitest'
import { verifyPassword } from '../../src/login/password.ts'
import { start } from '../support/start.ts'

/** A verification that stops until it is let go, and says how many have begun. */
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

test('after ten wrong logins a name has to wait, even with the right password', async () => {
  await using service = await start()

  const wrong = await repeat(10, () => service.login('adam', 'not it'))
  const right = await service.login('adam')

  expect(wrong.map(({ status }) => status)).toEqual(Array(10).fill(401))
  expect(right).toMatchObject({ status: 429, code: 'too_many_requests' })
  expect(right.headers.get('retry-after')).toBe('900')
})

test('Retry-After tells when the first slot is free again, and then it is', async () => {
  await using service = await start({ loginLimit: { attempts: 2, windowMs: 60_000 } })
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

test('who is over the limit costs no hash', async () => {
  let hashes = 0
  const verify = async () => {
    hashes += 1
    return false
  }
  await using service = await start({ verify })

  await repeat(30, () => service.login('adam', 'not it'))

  expect(hashes).toBe(10)
})

test('an unknown name has to wait as a known one has', async () => {
  await using service = await start({ loginLimit: { attempts: 1, windowMs: 60_000 } })
  await service.login('nobody', 'not it')

  const answer = await service.login('nobody', 'not it')

  expect(answer).toMatchObject({ status: 429, code: 'too_many_requests' })
})

test('wrong logins are counted for the address across names', async () => {
  await using service = await start({ loginLimit: { attempts: 3, windowMs: 60_000 } })
  await service.login('a', 'not it')
  await service.login('b', 'not it')
  await service.login('c', 'not it')

  const answer = await service.login('adam')

  expect(answer.status).toBe(429)
})

test('a right login clears the count of the name, not that of the address', async () => {
  await using service = await start({ loginLimit: { attempts: 3, windowMs: 60_000 } })
  const statuses: number[] = []

  for (const password of ['not it', 'not it', undefined, 'not it', undefined]) {
    statuses.push((await service.login('adam', password)).status)
  }

  expect(statuses).toEqual([401, 401, 200, 401, 429])
})

test('right logins are not limited', async () => {
  await using service = await start()

  const answers = await Promise.all(Array.from({ length: 30 }, () => service.login('adam')))

  expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200))
})

test('logins that are not valid are not counted', async () => {
  await using service = await start({ loginLimit: { attempts: 1, windowMs: 60_000 } })
  await service.login('adam', '')

  const answer = await service.login('adam')

  expect(answer.status).toBe(200)
})

test('a burst at one moment cannot pass the limit', async () => {
  let hashes = 0
  const verify = async (phc: string, password: string) => {
    hashes += 1
    return verifyPassword(phc, password)
  }
  await using service = await start({ verify })

  const answers = await Promise.all(
    Array.from({ length: 30 }, () => service.login('adam', 'not it')),
  )

  expect(answers.filter(({ status }) => status === 401)).toHaveLength(10)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(20)
  expect(hashes).toBe(10)
})

test('a hash that fails is a failure of ours and counts against nobody', async () => {
  let isBroken = true
  const verify = async () => {
    if (isBroken) throw new Error('out of memory')
    return true
  }
  await using service = await start({ verify, loginLimit: { attempts: 1, windowMs: 60_000 } })

  const failed = await service.login('adam')
  isBroken = false
  const then = await service.login('adam')

  expect([failed.status, then.status]).toEqual([500, 200])
})

test('two logins are hashed at a time, 32 wait, and the others are told to come back', async () => {
  const gate = makeGate()
  await using service = await start({ verify: gate.verify })
  const refused: Awaited<ReturnType<typeof service.login>>[] = []

  const logins = Array.from({ length: 40 }, async () => {
    const answer = await service.login('adam')
    if (answer.status !== 200) refused.push(answer)
    return answer.status
  })
  await expect.poll(() => refused.length, { timeout: 10_000 }).toBe(6)
  const begun = gate.begun.length
  gate.open()
  const statuses = await Promise.all(logins)

  expect(begun).toBe(2)
  expect(refused[0]).toMatchObject({ status: 503, code: 'unavailable' })
  expect(refused[0]?.headers.get('retry-after')).toBe('1')
  expect(statuses.filter((status) => status === 200)).toHaveLength(34)
})

test('while hashes run, other requests are served', async () => {
  const gate = makeGate()
  await using service = await start({ verify: gate.verify })
  const login = service.login('adam')
  await expect.poll(() => gate.begun.length).toBe(1)

  const other = await service.call('/open')
  gate.open()

  expect(other.status).toBe(200)
  expect((await login).status).toBe(200)
})

async function repeat<T>(times: number, run: () => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  for (let count = 0; count < times; count += 1) answers.push(await run())
  return answers
}
