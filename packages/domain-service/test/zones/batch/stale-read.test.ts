import { expect, test } from 'vitest'
import { StaleRead } from '../../../src/zones/batch/batch-calls.ts'
import { writeVerified } from '../../../src/zones/batch/verified-write.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { row, zone } from '../../support/zones.ts'

test('a write whose slot comes too late after each of three reads is not sent: 503 registrar_busy', async () => {
  const before = zone([])
  let tries = 0
  const calls = {
    ensure: async () => {},
    isFresh: false,
    read: async () => before,
    replace: async () => {
      tries++
      throw new StaleRead()
    },
  }

  const outcome = await writeVerified({
    calls,
    domain: 'example.com',
    before,
    after: zone([row('new', 'A', '192.0.2.9')]),
    recent: [],
    readCurrent: async () => before,
    verify: true,
    lookAgainMs: 0,
    clock: new FakeClock(),
    log: { warn: () => {} } as never, // Nothing is logged but a resent write.
  })

  expect(outcome).toMatchObject({ kind: 'unsent', error: { status: 503, code: 'registrar_busy' } })
  expect(tries).toBe(3)
})
