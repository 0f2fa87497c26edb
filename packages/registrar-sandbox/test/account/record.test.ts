import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const name = 'zone-under-test.com'
const hosts = [{ name: '@', type: 'A', address: '192.0.2.1' }]

test.each([
  [{ HostName: 'WWW', RecordType: 'a', Address: '192.0.2.1' }, ['www', 'A', '192.0.2.1', '10', '1800']],
  [{ HostName: '', RecordType: 'A', Address: '192.0.2.1' }, ['@', 'A', '192.0.2.1', '10', '1800']],
  [{ HostName: 'a', RecordType: 'CNAME', Address: 'b.com' }, ['a', 'CNAME', 'b.com.', '10', '1800']],
  [{ HostName: 'a', RecordType: 'CNAME', Address: 'b.com.' }, ['a', 'CNAME', 'b.com.', '10', '1800']],
  [{ HostName: '@', RecordType: 'ALIAS', Address: 'b.com' }, ['@', 'ALIAS', 'b.com.', '10', '1800']],
  [{ HostName: 'n', RecordType: 'NS', Address: 'ns.b.com' }, ['n', 'NS', 'ns.b.com.', '10', '1800']],
  [{ HostName: '@', RecordType: 'MX', Address: 'm.b.com' }, ['@', 'MX', 'm.b.com.', '10', '1800']],
  [{ HostName: '@', RecordType: 'MX', Address: 'm.b.com', MXPref: '0' }, ['@', 'MX', 'm.b.com.', '0', '1800']],
  [{ HostName: 'a', RecordType: 'A', Address: '192.0.2.1', MXPref: '33' }, ['a', 'A', '192.0.2.1', '10', '1800']],
  [{ HostName: 'a', RecordType: 'TXT', Address: 'x', TTL: '60' }, ['a', 'TXT', 'x', '10', '60']],
  [
    { HostName: 'a', RecordType: 'TXT', Address: '\u{1f600}'.repeat(2500) },
    ['a', 'TXT', '\u{1f600}'.repeat(2500), '10', '1800'],
  ],
  [{ HostName: 'a', RecordType: 'TXT', Address: '1e3', TTL: '60000' }, ['a', 'TXT', '1e3', '10', '60000']],
  [{ HostName: '@', RecordType: 'CAA', Address: '0 issue ca.com' }, ['@', 'CAA', '0 issue "ca.com"', '10', '1800']],
  [
    { HostName: '@', RecordType: 'CAA', Address: '0 issue "ca.com; validationmethods=dns-01"' },
    ['@', 'CAA', '0 issue "ca.com; validationmethods=dns-01"', '10', '1800'],
  ],
  [
    {
      HostName: '@',
      RecordType: 'CAA',
      Address: '128 issuewild ca.com; accounturi=https://x/1?a=b',
    },
    ['@', 'CAA', '128 issuewild "ca.com; accounturi=https://x/1?a=b"', '10', '1800'],
  ],
  [{ HostName: '@', RecordType: 'CAA', Address: '0 issue ";"' }, ['@', 'CAA', '0 issue ";"', '10', '1800']],
  [{ HostName: '*', RecordType: 'AAAA', Address: '2001:DB8::1' }, ['*', 'AAAA', '2001:DB8::1', '10', '1800']],
  [
    { HostName: '_a._tcp', RecordType: 'URL301', Address: 'https://b.com/?q=1' },
    ['_a._tcp', 'URL301', 'https://b.com/?q=1', '10', '1800'],
  ],
])('%o is stored as %j', async (sent, stored) => {
  await using registrar = await start({ domains: [{ name }] })

  await registrar.setHosts(name, [sent], { EmailType: 'MX' })

  expect(await registrar.getHosts(name)).toEqual([stored])
})

test.each([
  { RecordType: 'SRV', Address: '10 5 5060 sip.b.com.' },
  { RecordType: 'PTR', Address: 'b.com' },
  { RecordType: 'A', Address: '192.0.2.300' },
  { RecordType: 'A', Address: 'b.com' },
  { RecordType: 'AAAA', Address: '192.0.2.1' },
  { RecordType: 'AAAA', Address: 'fe80::1%eth0' },
  { RecordType: 'CNAME', Address: '192.0.2.1' },
  { RecordType: 'CNAME', Address: 'not a name' },
  { RecordType: 'MX', Address: '.' },
  { RecordType: 'MX', Address: 'm.b.com', MXPref: '65536' },
  { RecordType: 'MX', Address: 'm.b.com', MXPref: 'ten' },
  { RecordType: 'MXE', Address: 'b.com' },
  { RecordType: 'CAA', Address: '0 issuewild &quot;ca.com&quot;' },
  { RecordType: 'CAA', Address: '256 issue "ca.com"' },
  { RecordType: 'CAA', Address: '0 iodef "b.com"' },
  { RecordType: 'CAA', Address: '0 other "b.com"' },
  { RecordType: 'URL', Address: 'b.com' },
  { RecordType: 'FRAME', Address: `https://b.com/${'x'.repeat(250)}` },
  { RecordType: 'TXT', Address: 'x'.repeat(2501) },
  { RecordType: 'TXT', Address: 'bell\u0007' },
  { RecordType: 'TXT', Address: '' },
  { RecordType: '', Address: 'x' },
  { RecordType: 'TXT', Address: 'x', TTL: '59' },
  { RecordType: 'TXT', Address: 'x', TTL: '60001' },
  { RecordType: 'TXT', Address: 'x', TTL: '1e3' },
  { RecordType: 'TXT', Address: 'x', HostName: 'two words' },
  { RecordType: 'TXT', Address: 'x', HostName: '-dash' },
])('%j is refused and the zone stays as it was', async (record) => {
  await using registrar = await start({ domains: [{ name, hosts }] })
  const good = { HostName: '@', RecordType: 'TXT', Address: 'fine' }

  const answer = await registrar.setHosts(name, [good, { HostName: 'bad', ...record }])

  expect(answer.errors[0]?.[0]).toMatch(/^201[01]288$/)
  expect(await registrar.getHosts(name)).toEqual([['@', 'A', '192.0.2.1', '10', '1800']])
})

test('a record without a host name at all is refused', async () => {
  await using registrar = await start({ domains: [{ name }] })

  const answer = await registrar.setHosts(name, [{ RecordType: 'A', Address: '192.0.2.1' }])

  expect(answer.errors.map(([number]) => number)).toEqual(['2010288'])
})
