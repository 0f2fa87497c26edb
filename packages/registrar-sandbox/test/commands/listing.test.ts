import { expect, test } from 'vitest'
import type { DomainSketch } from '../../src/index.ts'
import { type Node, start } from '../support/start.ts'

const now = () => Date.parse('2026-03-10T15:00:00Z')

const domains: DomainSketch[] = [
  { name: 'bee.com', created: '2020-05-01', expires: '2027-05-01' },
  { name: 'ant.net', created: '2024-01-31', expires: '2026-03-09' },
  { name: 'cow.org', created: '2019-12-31', expires: '2026-03-10', isLocked: true },
  { name: 'dog.com', created: '2022-07-15', expires: '2026-04-09', autoRenew: true },
  { name: 'eel.com', created: '2022-07-15', expires: '2026-04-10', whoisGuard: 'NOTPRESENT' },
  { name: 'far.com', dns: 'custom', nameservers: ['a.example', 'b.example'] },
  { name: 'fox.com', dns: 'free' },
]

const many = Array.from({ length: 45 }, (_, index) => ({
  name: `n${String(index).padStart(2, '0')}.com`,
}))

const paging = (answer: { first: (name: string) => Node; list: (name: string) => Node[] }) =>
  ['TotalItems', 'CurrentPage', 'PageSize'].map((name) => Number(answer.first(name).text))
const namesOf = (answer: { list: (name: string) => Node[] }) => answer.list('Domain').map((domain) => domain['@Name'])

test.each([
  ['NAME', ['ant.net', 'bee.com', 'cow.org', 'dog.com', 'eel.com', 'far.com']],
  ['NAME_DESC', ['far.com', 'eel.com', 'dog.com', 'cow.org', 'bee.com', 'ant.net']],
  ['EXPIREDATE', ['ant.net', 'cow.org', 'dog.com', 'eel.com', 'far.com', 'bee.com']],
  ['expiredate_desc', ['bee.com', 'far.com', 'eel.com', 'dog.com', 'cow.org', 'ant.net']],
  ['CREATEDATE', ['cow.org', 'bee.com', 'dog.com', 'eel.com', 'ant.net', 'far.com']],
  ['CREATEDATE_DESC', ['far.com', 'ant.net', 'dog.com', 'eel.com', 'bee.com', 'cow.org']],
])('domains sorted by %s are in that order, without FreeDNS domains', async (SortBy, names) => {
  await using registrar = await start({ domains, now })

  const answer = await registrar.call('domains.getList', { SortBy })

  expect(namesOf(answer)).toEqual(names)
})

test.each([
  ['ALL', 6],
  ['EXPIRED', ['ant.net']],
  ['EXPIRING', ['cow.org', 'dog.com']],
])('the list type %s selects its domains', async (ListType, expected) => {
  await using registrar = await start({ domains, now })

  const answer = await registrar.call('domains.getList', { ListType })

  const names = namesOf(answer)
  expect(Array.isArray(expected) ? names : names.length).toEqual(expected)
})

test('a search finds the term anywhere in a name, in any case', async () => {
  await using registrar = await start({ domains, now })

  const answers = await Promise.all(
    ['O', '.net', 'nothing'].map((SearchTerm) => registrar.call('domains.getList', { SearchTerm })),
  )

  expect(answers.map(namesOf)).toEqual([['bee.com', 'cow.org', 'dog.com', 'eel.com', 'far.com'], ['ant.net'], []])
})

test.each([
  [{}, [45, 1, 20], 'n00.com', 20],
  [{ Page: '3' }, [45, 3, 20], 'n40.com', 5],
  [{ Page: '2', PageSize: '10' }, [45, 2, 10], 'n10.com', 10],
  [{ PageSize: '100' }, [45, 1, 100], 'n00.com', 45],
  [{ Page: '9', PageSize: '10' }, [45, 9, 10], undefined, 0],
])('page %o shows its part and the total', async (params, numbers, first, count) => {
  await using registrar = await start({ domains: many })

  const answer = await registrar.call('domains.getList', params)

  expect(paging(answer)).toEqual(numbers)
  expect(namesOf(answer)[0]).toBe(first)
  expect(namesOf(answer)).toHaveLength(count)
})

test.each([
  { PageSize: '9' },
  { PageSize: '101' },
  { PageSize: 'ten' },
  { Page: '0' },
  { Page: '-1' },
  { SortBy: 'SIZE' },
  { ListType: 'SOME' },
  { SearchTerm: 'x'.repeat(71) },
])('a list with %o is refused as a wrong parameter', async (params) => {
  await using registrar = await start()

  const answer = await registrar.call('domains.getList', params)

  expect(answer.errors[0]?.[0]).toMatch(/^201[13]\d{3}$/)
  expect(answer.list('Domain')).toEqual([])
})

test('a domain is listed with its dates, flags and nameservers', async () => {
  await using registrar = await start({ domains, now })

  const answer = await registrar.call('domains.getList')

  expect(answer.list('Domain').slice(0, 3)).toMatchObject([
    { '@Created': '01/31/2024', '@Expires': '03/09/2026', '@IsExpired': 'true' },
    { '@IsExpired': 'false', '@IsLocked': 'false', '@WhoisGuard': 'ENABLED', '@IsOurDNS': 'true' },
    { '@Expires': '03/10/2026', '@IsExpired': 'false', '@IsLocked': 'true' },
  ])
  expect(answer.list('Domain').at(-1)).toMatchObject({ '@Name': 'far.com', '@IsOurDNS': 'false' })
})

test('the samples have at least 45 domains and one of each special kind', async () => {
  await using registrar = await start({ now })

  const all = await registrar.call('domains.getList', { PageSize: '100' })
  const expired = await registrar.call('domains.getList', { ListType: 'EXPIRED' })
  const expiring = await registrar.call('domains.getList', { ListType: 'EXPIRING' })

  expect(paging(all)[0]).toBeGreaterThanOrEqual(45)
  expect(namesOf(expired)).toEqual(['lapsed-lantern.com', 'last-train.net'])
  expect(namesOf(expiring)).toEqual(['nearly-autumn.org', 'ticking-clocks.com'])
  expect(namesOf(all)).not.toContain('borrowed-plot.com')
  expect(namesOf(all)).toContain('xn--bckerei-knig-gcb4x.de')
})

test.each([
  ['quietharbour.org', { '@Status': 'Ok', '@IsOwner': 'true' }, 'FREE', 'No Email Service'],
  ['locked-vault.com', { '@Status': 'Locked' }, 'FREE', 'No Email Service'],
  ['last-train.net', { '@Status': 'Expired' }, 'FREE', 'No Email Service'],
  ['borrowed-plot.com', { '@IsOwner': 'false' }, 'FreeDNS', 'No Email Service'],
  ['brightledger.io', { '@IsPremium': 'true' }, 'PREMIUM', 'GMAIL'],
  ['farwood.dev', { '@OwnerName': 'tester' }, 'CUSTOM', 'No Email Service'],
])('the info on %s tells its status and who serves its names', async (name, result, provider, mail) => {
  await using registrar = await start()

  const answer = await registrar.call('domains.getInfo', { DomainName: name })

  expect(answer.first('DomainGetInfoResult')).toMatchObject(result)
  expect(answer.first('DnsDetails')).toMatchObject({
    '@ProviderType': provider,
    '@EmailType': mail,
    '@HostCount': String(registrar.sandbox.zone(name).hosts.length),
  })
})

test('a shared domain lists the granted rights, and is written with that to its hosts only', async () => {
  await using registrar = await start({ domains: [{ name: 'shared.com', isOwner: false, rights: ['dns', 'ddns'] }] })

  const answer = await registrar.call('domains.getInfo', { DomainName: 'shared.com' })

  const rights = answer.list('Rights').map((right) => [right['@Type'], right.text])
  expect(answer.first('Modificationrights')['@All']).toBe('false')
  expect(rights).toContainEqual(['dns', 'OK'])
  expect(rights).not.toContainEqual(['hosts', 'OK'])
  expect((await registrar.setHosts('shared.com', [])).errors.map(([number]) => number)).toEqual(['2030166'])
})
