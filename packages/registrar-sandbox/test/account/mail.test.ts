import { expect, test } from 'vitest'
import type { DomainSketch } from '../../src/index.ts'
import { start } from '../support/start.ts'

const name = 'post-office.com'
const types = ['NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL'] as const
const plain = { HostName: '@', RecordType: 'A', Address: '192.0.2.1' }
const mx = { HostName: '@', RecordType: 'MX', Address: 'mx.mail.example.', MXPref: '5' }
const mxe = { HostName: '@', RecordType: 'MXE', Address: '192.0.2.2' }
const own = (domain: Partial<DomainSketch>) => start({ domains: [{ name, ...domain }] })

test.each([
  ['NONE', 'NONE'],
  ['FWD', 'FWD'],
  ['MX', 'NONE'],
  ['MXE', 'NONE'],
  ['OX', 'NONE'],
  ['GMAIL', 'NONE'],
] as const)('a %s zone written without an email type becomes %s and has no MX', async (before, after) => {
  await using registrar = await own({ emailType: before })

  await registrar.setHosts(name, [plain, mx, mxe])

  const { emailType, hosts } = registrar.sandbox.zone(name)
  expect(emailType).toBe(after)
  expect(hosts.map(({ type }) => type)).toEqual(['A'])
})

test.each(types)('the email type %s is kept when it is sent', async (EmailType) => {
  await using registrar = await own({ emailType: 'FWD' })

  await registrar.setHosts(name, [plain], { EmailType: EmailType.toLowerCase() })

  expect(registrar.sandbox.zone(name).emailType).toBe(EmailType)
})

test.each([
  ['NONE', ['A']],
  ['FWD', ['A']],
  ['MX', ['A', 'MX']],
  ['OX', ['A', 'MX']],
  ['GMAIL', ['A', 'MX']],
  ['MXE', ['A', 'MXE']],
])('with the email type %s only these rows are stored: %j', async (EmailType, expected) => {
  await using registrar = await own({})

  const answer = await registrar.setHosts(name, [plain, mx, mxe], { EmailType })

  expect(answer.first('DomainDNSSetHostsResult')['@IsSuccess']).toBe('true')
  expect((await registrar.getHosts(name)).map((row) => row[1])).toEqual(expected)
})

test('EmailType1 is not the parameter EmailType', async () => {
  await using registrar = await own({ emailType: 'MX' })

  await registrar.setHosts(name, [mx], { EmailType1: 'MX' })

  expect(registrar.sandbox.zone(name)).toEqual({ emailType: 'NONE', hosts: [] })
})

test('an unknown email type is refused', async () => {
  await using registrar = await own({ emailType: 'FWD' })

  const answer = await registrar.setHosts(name, [plain], { EmailType: 'POP' })

  expect(answer.errors.map(([number]) => number)).toEqual(['2011288'])
  expect(registrar.sandbox.zone(name).emailType).toBe('FWD')
})

test('an MXE row comes back under the name of the domain, with its title, and is accepted so', async () => {
  await using registrar = await own({})
  const zone = { SLD: 'post-office', TLD: 'com' }
  await registrar.setHosts(name, [mxe], { EmailType: 'MXE' })
  const first = (await registrar.call('domains.dns.getHosts', zone)).first('host')

  await registrar.setHosts(name, [{ ...mxe, HostName: name }], { EmailType: 'MXE' })

  const second = (await registrar.call('domains.dns.getHosts', zone)).first('host')
  expect(first).toMatchObject({
    '@Name': name,
    '@AssociatedAppTitle': 'MXE',
    '@FriendlyName': 'MXE1',
  })
  expect(second).toEqual(first)
})

test('a domain on other name servers can answer with its old rows', async () => {
  const hosts = [{ name: '@', type: 'A', address: '192.0.2.1' }]
  await using registrar = await own({ dns: 'custom', whenElsewhere: 'stale', hosts })

  const answer = await registrar.call('domains.dns.getHosts', { SLD: 'post-office', TLD: 'com' })

  expect(answer.status).toBe('OK')
  expect(answer.first('DomainDNSGetHostsResult')['@IsUsingOurDNS']).toBe('false')
  expect(answer.list('host')).toHaveLength(1)
})
