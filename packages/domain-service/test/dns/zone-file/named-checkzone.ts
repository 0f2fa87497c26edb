import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { Row } from '../../../src/dns/record.ts'
import { toRecords } from '../../../src/dns/zone.ts'
import { parseZoneFile, printZoneFile } from '../../../src/dns/zone-file/zone-file.ts'
import { row, zone } from '../../support/zones.ts'

// BIND reads what is printed, and its output is the same zone. A part of `npm run test:integrations`, which installs BIND.

const label = fc.stringMatching(/^[a-z0-9_](?:[a-z0-9-]{0,8}[a-z0-9])?$/)
const name = fc.oneof(
  fc.constant('@'),
  label,
  fc.tuple(fc.constantFrom('*', 'a'), label).map((labels) => labels.join('.')),
)
const target = fc.tuple(label, label).map(([first, last]) => `${first}.${last}.test.`)
const printable = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 700 }).filter((text) => !/\p{Cc}/u.test(text))

const validRows = fc.uniqueArray(
  fc.oneof(
    fc.tuple(name, fc.ipV4()).map(([owner, address]) => row(owner, 'A', address)),
    fc.tuple(name, fc.ipV6()).map(([owner, address]) => row(owner, 'AAAA', address)),
    fc
      .tuple(name, target, fc.nat(65_535))
      .map(([owner, address, pref]) => row(owner, 'MX', address, { mxPref: String(pref) })),
    fc.tuple(name, printable).map(([owner, address]) => row(owner, 'TXT', address)),
    fc
      .tuple(name, fc.constantFrom('0 issue "ca.example.net"', '128 issuewild ";"', '0 iodef "https://example.net/a"'))
      .map(([owner, address]) => row(owner, 'CAA', address)),
  ),
  { selector: (each: Row) => JSON.stringify(each), minLength: 1, maxLength: 20 },
)

const folder = mkdtempSync(join(tmpdir(), 'zone-file-'))
const file = join(folder, 'zone')
const options = ['-q', '-D', '-i', 'none', '-k', 'ignore']
const before = '$TTL 1800\n@ SOA ns.test. a.test. 1 2 3 4 5\n@ NS ns.test.\n'

function readWithBind(text: string) {
  writeFileSync(file, before + text)
  const output = execFileSync('named-checkzone', [...options, 'example.com', file])
  const { records } = parseZoneFile(String(output), 'example.com')
  return records.map(({ name, type, address, mx_pref: pref = 10 }) =>
    row(name, type, address, { mxPref: String(pref) }),
  )
}

const textOf = ({ name, type, address, mx_pref }: ReturnType<typeof toRecords>[number]) =>
  JSON.stringify([name, type, type === 'AAAA' ? new URL(`http://[${address}]/`).hostname : address, mx_pref])

const textsOf = (rows: Row[]) => new Set(toRecords(zone(rows)).map(textOf))

try {
  const isSame = fc.property(validRows, (rows) => {
    const read = readWithBind(printZoneFile(zone(rows, 'MX')))
    assert.deepEqual(textsOf(read), textsOf(rows))
  })
  fc.assert(isSame, { numRuns: 40 })
  process.stdout.write('ok BIND reads 40 zone files as they were meant\n')
} finally {
  rmSync(folder, { recursive: true })
}
