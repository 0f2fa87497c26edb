import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import { subtract, type Zone } from '../../../src/dns/zone.ts'
import { parseZoneFile, printZoneFile } from '../../../src/dns/zone-file/zone-file.ts'
import { anyEmailType, oddRows, row, zone } from '../../support/zones.ts'

function putBack(live: Zone, text = printZoneFile(live)): Zone {
  const { records, emailType, lines } = parseZoneFile(text, live.domain)
  return applyEdit(live, { kind: 'replace', records, emailType, lines })
}

test('a zone is printed as a zone file', () => {
  const text = printZoneFile(
    zone(
      [
        row('@', 'A', '192.0.2.1'),
        row('@', 'MX', 'mx.example.net.', { mxPref: '0', ttl: '300' }),
        row('@', 'CAA', '0 issue "ca.example.net; policy=ev"'),
        row('www', 'CNAME', 'host.example.net.'),
        row('txt', 'TXT', `"\u00e9\\${'x'.repeat(260)}`),
        row('go', 'URL', 'https://example.net/"'),
        row('a', 'ALIAS', 'host.example.net.'),
        row('_sip._tcp', 'SRV', '0 0 5060 a.'),
      ],
      'MX',
    ),
  )

  expect(text.split('\n').slice(2)).toEqual([
    '$ORIGIN example.com.',
    '$TTL 1800',
    '; domain-service email-type MX',
    '@\t1800\tIN\tA\t192.0.2.1',
    '@\t1800\tIN\tCAA\t0 issue "ca.example.net; policy=ev"',
    '@\t300\tIN\tMX\t0 mx.example.net.',
    '; domain-service record _sip._tcp 1800 SRV "0 0 5060 a."',
    '; domain-service record a 1800 ALIAS "host.example.net"',
    '; domain-service record go 1800 URL "https://example.net/\\""',
    `txt\t1800\tIN\tTXT\t"\\"\\195\\169\\\\${'x'.repeat(251)}" "${'x'.repeat(9)}"`,
    'www\t1800\tIN\tCNAME\thost.example.net.',
    '',
  ])
})

test('what GET returns can be PUT back and changes nothing, for any zone', () => {
  fc.assert(
    fc.property(oddRows, anyEmailType, (rows, emailType) => {
      const live = zone(rows, emailType)

      const after = putBack(live)

      expect(after.emailType).toBe(emailType)
      expect(after.rows.length).toBe(rows.length)
      expect(subtract(after.rows, rows)).toEqual([])
    }),
    { numRuns: 1000 },
  )
})
