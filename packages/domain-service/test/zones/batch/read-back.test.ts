import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import type { Zone } from '../../../src/dns/zone.ts'
import { CallFailed } from '../../../src/registrar/call-failed.ts'
import { StaleRead } from '../../../src/zones/batch/current-zone.ts'
import { writeVerified } from '../../../src/zones/batch/verified-write.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { row, zone } from '../../support/zones.ts'

const [before, after, foreign] = ['old', 'new', 'theirs'].map((name) =>
  zone([row(name, 'A', '192.0.2.9')]),
) as [Zone, Zone, Zone]

const noAnswer = () => new CallFailed('unknown', new HttpError(504, 'registrar_timeout', 'lost'))

/** Writes `after` over `before`; the sends fail so in turn, and the reads afterwards show these zones. */
async function write(shown: Zone[], failures: Error[] = [], isFresh = true) {
  let [sends, reads] = [0, 0]
  const outcome = await writeVerified({
    calls: {
      ensure: async () => {},
      isFresh,
      read: async () => {
        const next = shown[reads++]
        if (!next) throw new RangeError('one read too many')
        return next
      },
      replace: async () => {
        const failure = failures[sends++]
        if (failure) throw failure
      },
    },
    before,
    after,
    recent: [],
    readCurrent: async () => before,
    verify: true,
    clock: new FakeClock(),
    log: { warn: () => {} } as never, // The only method that is called.
  })
  return { kind: outcome.kind, error: 'error' in outcome ? outcome.error.code : '', sends, reads }
}

test('a zone that no send explains makes a write different only if it is shown twice', async () => {
  expect(await write([foreign, after])).toMatchObject({ kind: 'written', reads: 2 })
  expect(await write([foreign, foreign])).toMatchObject({ kind: 'differs', reads: 2 })
})

test('an unanswered write is sent again only if the old zone is shown twice', async () => {
  expect(await write([before, after], [noAnswer()])).toMatchObject({ kind: 'written', sends: 1 })
  expect(await write([before, before, after], [noAnswer()])).toMatchObject({
    kind: 'written',
    sends: 2,
  })
})

test('a write whose slot comes too late after each of three reads is not sent', async () => {
  const late = [new StaleRead(), new StaleRead(), new StaleRead()]

  expect(await write([], late, false)).toEqual({
    kind: 'unsent',
    error: 'registrar_busy',
    sends: 3,
    reads: 0,
  })
})
