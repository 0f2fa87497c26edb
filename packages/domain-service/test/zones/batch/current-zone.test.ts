import { expect, test } from 'vitest'
import type { Zone } from '../../../src/dns/zone.ts'
import type { RecentSend } from '../../../src/ledger/ledger.ts'
import { ageOf, readCurrent } from '../../../src/zones/batch/current-zone.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { row, zone } from '../../support/zones.ts'

const empty = zone([])
const [a, b, c] = ['a', 'b', 'c'].map((name) => zone([row(name, 'A', '192.0.2.1')])) as [Zone, Zone, Zone]
const sendOf = (base: Zone, sent: Zone, isDone = true): RecentSend => ({ base, zone: sent, isDone })

/** Reads these answers in turn; the clock advances whenever the reader waits. */
async function read(answers: Zone[], recent: RecentSend[], late: Zone[] = []) {
  const clock = new FakeClock()
  const started = clock.now()
  let count = 0
  const readNext = async () => {
    const answer = answers[count++]
    if (!answer) throw new RangeError('one read too many')
    return answer
  }
  const sends = late.map((each) => ({ id: 1, unanswered: 1, zone: each, confirmed: empty }))
  const reading = readCurrent({ read: readNext, clock }, { recent, late: sends })
  let isRead = false
  void reading.finally(() => {
    isRead = true
  })
  while (!isRead) {
    await clock.advance(0)
    if (!isRead) await clock.advanceToNext()
  }
  return { zone: await reading, reads: count, waitedMs: clock.now() - started }
}

test('without a recent send the first answer counts', async () => {
  expect(await read([a], [])).toEqual({ zone: a, reads: 1, waitedMs: 0 })
})

test('the zone that the newest send left counts at once', async () => {
  expect(await read([b], [sendOf(a, b)])).toEqual({ zone: b, reads: 1, waitedMs: 0 })
})

test('the zone before a recent send, however many sends ago, is an outdated answer if a newer zone follows', async () => {
  const recent = [sendOf(b, c), sendOf(a, b)]

  expect(await read([b, c], recent)).toEqual({ zone: c, reads: 2, waitedMs: 1_000 })
  expect(await read([a, b, a, c], recent)).toEqual({ zone: c, reads: 4, waitedMs: 3_000 })
})

test('the zone before a recent send counts once it was seen four times', async () => {
  expect(await read([a, a, a, a], [sendOf(a, b)])).toEqual({ zone: a, reads: 4, waitedMs: 3_000 })
})

test('the zone before a send without an outcome counts no sooner', async () => {
  const recent = [sendOf(b, c, false), sendOf(a, b)]

  expect(await read([b, c], recent)).toEqual({ zone: c, reads: 2, waitedMs: 1_000 })
})

test('of former zones that four reads show the newest counts, unless an older one may be a late write', async () => {
  const recent = [sendOf(b, c, false), sendOf(a, b)]

  expect(await read([a, b, a, a], recent)).toMatchObject({ zone: b, reads: 4 })
  expect(await read([b, a, a, a], recent)).toMatchObject({ zone: b, reads: 4 })
  expect(await read([b, a, b, b], recent, [a])).toMatchObject({ zone: a, reads: 4 })
})

test('another tool’s zone counts when the next answer repeats it', async () => {
  expect(await read([c, c], [sendOf(a, b)])).toEqual({ zone: c, reads: 2, waitedMs: 0 })
  expect(await read([c, empty, empty], [sendOf(a, b)])).toMatchObject({ zone: empty, reads: 3 })
  expect(await read([a, c, a, c], [sendOf(a, b)])).toMatchObject({ zone: c, reads: 4 })
  expect(await read([c, a, a, a], [sendOf(a, b)])).toMatchObject({ zone: a, reads: 4 })
})

test('the newest send that knows a zone tells its age, unless it may not be done', () => {
  expect(ageOf(a, [sendOf(b, a), sendOf(a, b)])).toBe(0)
  expect(ageOf(b, [sendOf(b, a), sendOf(a, b)])).toBe(1)
  expect(ageOf(a, [sendOf(b, a, false), sendOf(a, b)])).toBe(2)
  expect(ageOf(a, [sendOf(b, a, false)])).toBe(0)
  expect(ageOf(b, [sendOf(c, empty), sendOf(a, b)])).toBe(1) // Another tool wrote c.
  expect(ageOf(c, [sendOf(b, a), sendOf(a, b)])).toBe(-1)
})
