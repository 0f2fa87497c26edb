import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import type { Zone } from '../../../src/dns/zone.ts'
import type { RecentSend } from '../../../src/ledger/ledger.ts'
import { CallFailed } from '../../../src/registrar/call-failed.ts'
import { readCurrent } from '../../../src/zones/batch/current-zone.ts'
import { RegistrarZone } from '../../../src/zones/batch/registrar-zone.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { row, zone } from '../../support/zones.ts'

const [before, after, foreign] = ['old', 'new', 'theirs'].map((name) => zone([row(name, 'A', '192.0.2.9')])) as [
  Zone,
  Zone,
  Zone,
]

interface Write {
  isLate?: boolean
  wanted?: Zone
  recent?: RecentSend[]
}

const noAnswer = () => new CallFailed('unknown', new HttpError(504, 'registrar_timeout', 'lost'))

/** Writes `wanted` over `before`; the sends fail so in turn, and the reads afterwards show these zones. */
async function write(
  shown: Zone[],
  failures: Error[] = [],
  { isLate = false, wanted = after, recent = [] }: Write = {},
) {
  const clock = new FakeClock()
  let [sends, reads] = [0, 0]
  const registrar = {
    quota: { reserve: async () => ({ slots: 9 }), release: () => undefined },
    onZone: () => undefined,
    zone: async (_domain: unknown, _slot: unknown, onRead: (zone: Zone, at: number) => void) => {
      const next = reads++ === 0 || isLate ? before : shown[reads - 2]
      if (!next) throw new RangeError('one read too many')
      onRead(next, clock.now())
      return next
    },
    replaceZone: async (_domain: unknown, _zone: Zone, _slot: unknown, onSend: () => void) => {
      if (isLate) await clock.advance(1_000)
      const failure = failures[sends++]
      onSend()
      if (failure) throw failure
    },
  }
  const zone = new RegistrarZone({
    registrar,
    clock,
    domain: { name: 'example.com', sld: 'example', tld: 'com' },
    verify: true,
    log: { warn: () => {} },
  } as never) // The only methods that are called.
  const known = { recent, late: [] }
  await readCurrent(zone, known)
  const { state, error } = await zone.write({ before, after: wanted, sends: known })
  return { state, error: error?.code ?? '', sends, reads: reads - 1 }
}

test('a zone that no send explains makes a write different only if it is shown twice', async () => {
  expect(await write([foreign, after])).toMatchObject({ state: 'settled', reads: 2 })
  expect(await write([foreign, foreign])).toMatchObject({ state: 'closed', reads: 2 })
})

test('an unanswered write is sent again only if the old zone is shown twice', async () => {
  expect(await write([before, after], [noAnswer()])).toMatchObject({ state: 'settled', sends: 1 })
  expect(await write([before, before, after], [noAnswer()])).toMatchObject({
    state: 'settled',
    sends: 2,
  })
})

test('an unanswered write that cannot be sent again may be done all the same', async () => {
  const busy = new HttpError(503, 'registrar_busy', 'no call is free')

  const ended = await write([before, before], [noAnswer(), busy])

  expect(ended).toEqual({ state: 'unknown', error: 'write_not_confirmed', sends: 2, reads: 2 })
})

test('an unanswered write whose parts undo each other is sent again only if the zone is shown twice', async () => {
  const undone = { wanted: before, recent: [{ base: foreign, zone: before, isDone: true }] }

  expect(await write([foreign, after, before], [noAnswer()], undone)).toMatchObject({ state: 'settled', sends: 1 })
  expect(await write([before, before, before, before, before], [noAnswer()], undone)).toMatchObject({ sends: 2 })
})

test('a write whose slot comes too late after each of three reads is not sent', async () => {
  expect(await write([], [], { isLate: true })).toEqual({
    state: 'unsent',
    error: 'registrar_busy',
    sends: 3,
    reads: 2,
  })
})
