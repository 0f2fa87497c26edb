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

test('a zone that is not the only one to explain a list is given on, and not given back twice', async () => {
  const given = new GivenZones(openEmbedded())
  const to = { token: 'token', domain: 'example.com' }
  const zone = { records: [] }
  await given.add(to, { zone })
  const replace = (isCertain: boolean) =>
    given.replace(to, zone, ([used]) => used && { used, base: zone, isCertain, mayRepeat: false })
  const copies = async () => {
    const seen: number[] = []
    await given.replace(to, zone, (all) => void seen.push(all[0]?.copies ?? -1))
    return seen[0]
  }

  const kept = await replace(false)
  await given.giveBack(kept?.id ?? 0, kept?.used)
  const afterKept = await copies()
  const used = await replace(true)
  const afterUsed = await copies()
  await given.giveBack(used?.id ?? 0, used?.used)

  expect([afterKept, afterUsed, await copies()]).toEqual([1, 0, 1])
})
