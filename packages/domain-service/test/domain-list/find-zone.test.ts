import { createLogger } from '@domains-and-files/http'
import { expect, onTestFinished, test } from 'vitest'
import { DomainList } from '../../src/domain-list/domain-list.ts'
import { DomainListStore } from '../../src/domain-list/list-store.ts'
import type { RegistrarClient } from '../../src/registrar/client.ts'
import type { DomainEntry } from '../../src/registrar/responses.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openEmbedded } from '../support/ledger.ts'

const entry = (name: string): DomainEntry => ({
  name,
  id: '1',
  created_on: null,
  expires_on: null,
  is_expired: false,
  is_locked: false,
  auto_renew: false,
  whois_guard: null,
  is_premium: false,
  uses_registrar_dns: true,
})

/** A list over a registrar that gives these pages, and then no answer. */
async function listOf(pages: string[][], total = pages.flat().length) {
  const registrar = {
    listDomains: ({ page }: { page: number }) => {
      const names = pages[page - 1]
      if (!names) return new Promise(() => undefined)
      return Promise.resolve({ domains: names.map(entry), total })
    },
    quota: { waitMs: (priority: string) => (priority === 'read' ? 1 : 120_000) },
    freshAgeMs: 0,
  } as unknown as RegistrarClient // What a list uses of it.
  const list = await DomainList.open({
    registrar,
    store: new DomainListStore(openEmbedded(), 'account'),
    ttlMs: 300_000,
    clock: new FakeClock(),
    log: createLogger({ name: 'test', level: 'silent' }),
  })
  onTestFinished(() => {
    list.close()
  })
  return list
}

const all = () => true

test.each([
  ['example.com', 'example.com'],
  ['_acme-challenge.www.Example.com.', 'example.com'],
  ['www.shop.it.com', 'shop.it.com'],
  ['www.it.com', undefined],
  ['a.b.example.co.uk', 'example.co.uk'],
  ['www.bücher.de', 'xn--bcher-kva.de'],
  ['notexample.com', undefined],
  ['com', undefined],
  ['', undefined],
])('the zone of %j is %j', async (hostName, zone) => {
  const list = await listOf([['example.com', 'shop.it.com', 'example.co.uk', 'xn--bcher-kva.de']])

  const found = await list.findZoneOf(hostName, all)

  expect(found?.name).toBe(zone)
})

test('a zone that the caller may not see is not found', async () => {
  const list = await listOf([['example.com', 'example.net']])
  const isVisible = (name: string) => name === 'example.net'

  expect(await list.findZoneOf('www.example.com', isVisible)).toBeUndefined()
  expect((await list.findZoneOf('www.example.net', isVisible))?.sld).toBe('example')
})

test('while the list is incomplete, the part that was read is searched; otherwise 503 with Retry-After', async () => {
  const list = await listOf([['example.com']], 250)

  expect((await list.findZoneOf('www.example.com', all))?.name).toBe('example.com')
  await expect(list.findZoneOf('www.example.net', all)).rejects.toMatchObject({
    code: 'registrar_busy',
    headers: { 'retry-after': '121' },
  })
})
