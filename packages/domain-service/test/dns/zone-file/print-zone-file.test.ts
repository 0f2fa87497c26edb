import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { applyEdit } from '../../../src/dns/edits/apply-edit.ts'
import { type Row, subtract, toRecords, type Zone } from '../../../src/dns/record.ts'
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
    `txt\t1800\tIN\tTXT\t"\\"\\195\\169\\\\${'x'.repeat(251)}" "${'x'.repeat(9)}"`,
    'www\t1800\tIN\tCNAME\thost.example.net.',
    '; domain-service record _sip._tcp 1800 SRV "0 0 5060 a."',
    '; domain-service record a 1800 ALIAS "host.example.net"',
    '; domain-service record go 1800 URL "https://example.net/\\""',
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
      expect(subtract(after.rows, rows, live.domain)).toEqual([])
    }),
    { numRuns: 1000 },
  )
})

const label = fc.stringMatching(/^[a-z0-9_](?:[a-z0-9-]{0,8}[a-z0-9])?$/)
const name = fc.oneof(
  fc.constant('@'),
  label,
  fc.tuple(fc.constantFrom('*', 'a'), label).map((labels) => labels.join('.')),
)
const target = fc.tuple(label, label).map(([first, last]) => `${first}.${last}.test.`)
const printable = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 700 })
  .filter((text) => !/\p{Cc}/u.test(text))

const validRows = fc.uniqueArray(
  fc.oneof(
    fc.tuple(name, fc.ipV4()).map(([owner, address]) => row(owner, 'A', address)),
    fc.tuple(name, fc.ipV6()).map(([owner, address]) => row(owner, 'AAAA', address)),
    fc
      .tuple(name, target, fc.nat(65_535))
      .map(([owner, address, pref]) => row(owner, 'MX', address, { mxPref: String(pref) })),
    fc.tuple(name, printable).map(([owner, address]) => row(owner, 'TXT', address)),
    fc
      .tuple(
        name,
        fc.constantFrom(
          '0 issue "ca.example.net"',
          '128 issuewild ";"',
          '0 iodef "https://example.net/a"',
        ),
      )
      .map(([owner, address]) => row(owner, 'CAA', address)),
  ),
  { selector: (each: Row) => JSON.stringify(each), minLength: 1, maxLength: 20 },
)

test('BIND reads what is printed, and its output is the same zone', async (context) => {
  const check = promisify(execFile)
  const isInstalled = await check('named-checkzone', ['-v']).then(
    () => true,
    () => false,
  )
  if (!isInstalled) context.skip('named-checkzone is not installed: apt-get install bind9-utils')
  const folder = await mkdtemp(join(tmpdir(), 'zone-file-'))
  const before = '$TTL 1800\n@ SOA ns.test. a.test. 1 2 3 4 5\n@ NS ns.test.\n'
  try {
    await fc.assert(
      fc.asyncProperty(validRows, async (rows) => {
        const live = zone(rows, 'MX')
        const file = join(folder, 'zone')
        await writeFile(file, before + printZoneFile(live))

        const { stdout } = await check('named-checkzone', [
          '-q',
          '-D',
          '-i',
          'none',
          '-k',
          'ignore',
          'example.com',
          file,
        ])
        const records = parseZoneFile(stdout, 'example.com').records
        const printed = toRecords({
          ...live,
          rows: records.map((each) =>
            row(each.name, each.type, each.address, { mxPref: String(each.mx_pref ?? 10) }),
          ),
        })

        expect(new Set(printed.map(textOf))).toEqual(new Set(toRecords(live).map(textOf)))
      }),
      { numRuns: 40 },
    )
  } finally {
    await rm(folder, { recursive: true })
  }
})

const textOf = ({ name, type, address, mx_pref }: ReturnType<typeof toRecords>[number]) =>
  JSON.stringify([
    name,
    type,
    type === 'AAAA' ? new URL(`http://[${address}]/`).hostname : address,
    mx_pref,
  ])
