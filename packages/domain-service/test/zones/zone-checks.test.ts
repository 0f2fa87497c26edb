import { createLogger } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { checkZones } from '../../src/zones/zone-watch.ts'
import { FakeClock } from '../support/fake-clock.ts'

const timeoutMs = 15_000

test('a replica that becomes active again checks at once what the other one left', async () => {
  const clock = new FakeClock()
  const checked: string[] = []
  let isActive = true
  const left: { name: string; sentAt: number; now: number }[] = []
  const checks = checkZones({
    ledger: { unsettledDomains: async () => left },
    queue: { isBusy: () => false, check: async ({ name }: { name: string }) => void checked.push(name) },
    isActive: () => isActive,
    log: createLogger({ name: 'test', level: 'silent' }),
    clock,
    timeoutMs,
  } as never) // Only what it uses.

  await checks.start(timeoutMs)
  isActive = false
  await clock.advance(timeoutMs)
  isActive = true
  left.push({ name: 'example.com', sentAt: clock.now(), now: clock.now() })
  await clock.advance(timeoutMs)
  await checks.close()

  expect(checked).toEqual(['example.com'])
})
