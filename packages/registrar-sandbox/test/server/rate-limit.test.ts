import { expect, test } from 'vitest'
import { RateLimit } from '../../src/server/rate-limit.ts'
import { start } from '../support/start.ts'

const read = { Command: 'namecheap.domains.getTldList' }

test('a call over the limit of a minute is a bare 405; the next minute accepts calls again', async () => {
  let time = 1_000_000
  await using registrar = await start({ rate: '2/minute', now: () => time })

  const first = await Promise.all([1, 2, 3].map(() => registrar.send(read)))
  time += 60_000
  const later = await registrar.send(read)

  expect(first.map(({ status }) => status).sort()).toEqual([200, 200, 405])
  expect(first.find(({ status }) => status === 405)?.body).toBe('Too many requests')
  expect(later.status).toBe(200)
  expect(registrar.sandbox.calls.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'rate', 'ok'])
})

test('a call over the limit is not executed', async () => {
  await using registrar = await start({ rate: '1/hour' })
  await registrar.send(read)

  await registrar.send({
    Command: 'namecheap.domains.dns.setHosts',
    SLD: 'quietharbour',
    TLD: 'org',
  })

  expect(registrar.sandbox.zone('quietharbour.org').hosts).toHaveLength(2)
})

test('every window slides on its own, and refused calls are not counted', () => {
  const rate = new RateLimit('2/minute,3/hour,4/day')
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
  const times = [0, 1, 2, minute, minute + 1, hour, hour + 1, day, day + hour]

  const taken = times.map((time) => rate.take(time))

  expect(taken).toEqual([true, true, false, true, false, true, false, true, true])
})

test('without a rate nothing is refused', () => {
  const rate = new RateLimit('off')

  const taken = Array.from({ length: 1000 }, () => rate.take(0))

  expect(taken).not.toContain(false)
})

test.each(['', '20', '20/week', 'x/minute', '20/minute,'])('%j is not a rate', (text) => {
  const make = () => new RateLimit(text)

  expect(make).toThrow(SyntaxError)
})
