import { expect, test } from 'vitest'
import { GivenZones } from '../../src/ledger/given-zones.ts'
import { openEmbedded } from '../support/ledger.ts'

test('a list whose write is not known to be done counts for ten minutes', async () => {
  let now = Date.UTC(2027, 0, 15)
  const given = new GivenZones(openEmbedded(() => now))
  const to = { token: 'token', domain: 'example.com' }
  await given.submit(to, { records: [] }, { records: [] })

  now += 599_999
  const early = await given.submitted(to)
  now += 1
  const late = await given.submitted(to)

  expect([early.length, late.length]).toEqual([1, 0])
})
