import { expect, test } from 'vitest'
import { z } from 'zod'
import { createToken, send } from '../support/protocol-client.ts'
import { type Service, start, www } from '../support/start.ts'

const Found = z.object({
  records: z.array(z.looseObject({ domain: z.string(), name: z.string(), type: z.string(), read_at: z.string() })),
  pagination: z.object({ total_items: z.number() }),
  zones_searched: z.number(),
})

const text = { name: '@', type: 'TXT', address: 'v=spf1 include:Mail.example.net -all' }
const domains = [
  { name: 'example.com', hosts: [www, text] },
  { name: 'other.com', hosts: [www, { name: 'mail', type: 'A', address: '192.0.2.7' }] },
  { name: 'xn--mnchen-3ya.com', hosts: [www] },
]

/** A service that has read the zones of these domains. */
async function startKnowing(names = domains.map(({ name }) => name)): Promise<Service> {
  const service = await start({ domains })
  for (const name of names) await service.call('GET', `/api/domains/${name}/dns/hosts`)
  return service
}

async function search(service: Service, query: string, user = 'viewer') {
  const answer = await service.call('GET', `/api/records${query}`, { user })
  return summaryOf(answer.text)
}

function summaryOf(body: string) {
  const { records, pagination, zones_searched: zones } = Found.parse(JSON.parse(body))
  const names = records.map(({ domain, name, type }) => `${domain} ${name} ${type}`)
  return { names, total: pagination.total_items, zones }
}

test('records of every known zone are found by words of name, type and value, without a call', async () => {
  await using service = await startKnowing()
  service.sandbox.clearCalls()

  expect(await search(service, '?search=www')).toEqual({
    names: ['example.com www A', 'other.com www A', 'xn--mnchen-3ya.com www A'],
    total: 3,
    zones: 3,
  })
  expect((await search(service, '?search=MAIL.example')).names).toEqual(['example.com @ TXT'])
  expect((await search(service, '?search=mail.other.com%20192.0.2')).names).toEqual(['other.com mail A'])
  expect((await search(service, '?search=www.m%C3%BCnchen')).names).toEqual(['xn--mnchen-3ya.com www A'])
  expect((await search(service, '?domain=Other.com.')).names).toEqual(['other.com mail A', 'other.com www A'])
  expect((await search(service, '?type=txt')).names).toEqual(['example.com @ TXT'])
  expect(await search(service, '?search=www&page=2&page_size=2')).toEqual({
    names: ['xn--mnchen-3ya.com www A'],
    total: 3,
    zones: 3,
  })
  expect(service.commands()).toEqual([])
})

test('a zone that was never read is not searched, and one that was written is as it is now', async () => {
  await using service = await startKnowing(['other.com'])
  const hosts = '/api/domains/other.com/dns/hosts'
  const before = Date.now()

  expect((await search(service, '?search=www')).zones).toBe(1)
  await service.call('POST', `${hosts}/A`, { body: { name: 'new', address: '192.0.2.8' } })
  const answer = await service.call('GET', '/api/records?search=new.other')

  const [found] = Found.parse(JSON.parse(answer.text)).records
  expect(found).toMatchObject({ domain: 'other.com', name: 'new', address: '192.0.2.8' })
  expect(Math.abs(Date.parse(found?.read_at ?? '') - before)).toBeLessThan(600_000)
})

test('what a caller may not read is not there: domains, and records outside of a token', async () => {
  await using service = await startKnowing()
  const token = await createToken(service, { records: [{ name: 'mail', types: ['A'] }] })
  const limited = await send(service, 'GET', '/api/records', {
    headers: { authorization: `Bearer ${token}` },
  })

  expect(await search(service, '?search=www', 'limited')).toEqual({
    names: ['example.com www A'],
    total: 1,
    zones: 1,
  })
  expect(summaryOf(limited.text)).toEqual({ names: ['other.com mail A'], total: 1, zones: 1 })
})

test('a domain that has left the account is not searched', async () => {
  await using service = await startKnowing()
  service.sandbox.removeDomain('other.com')
  await service.call('GET', '/api/domains', { headers: { 'cache-control': 'no-cache' } })

  expect((await search(service, '?search=www')).names).toEqual(['example.com www A', 'xn--mnchen-3ya.com www A'])
})
