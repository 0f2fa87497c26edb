import { HttpError } from '@domains-and-files/http'
import fc from 'fast-check'
import type { Row } from '../../src/dns/record.ts'
import { recordTypes } from '../../src/dns/record-types.ts'
import type { Zone } from '../../src/dns/zone.ts'

/** A row as the registrar gives it. */
export const row = (name: string, type: string, address: string, rest: Partial<Row> = {}): Row => ({
  name,
  type,
  address,
  ttl: '1800',
  mxPref: '10',
  dynamic: false,
  ...rest,
})
/** A zone of example.com; email type NONE unless given, also as undefined. */
export const zone = (rows: Row[], ...rest: [emailType?: string | undefined]): Zone => ({
  domain: 'example.com',
  usesRegistrarDns: true,
  emailType: rest.length > 0 ? rest[0] : 'NONE',
  rows,
})

/** The HttpError that a call throws. */
export function failureOf(run: () => unknown): HttpError {
  try {
    run()
  } catch (error) {
    if (error instanceof HttpError) return error
    throw error
  }
  throw new Error('expected an HttpError')
}

export const www = row('www', 'A', '192.0.2.1')

/** Rows as the registrar may hold them, valid or not. */
export const oddRows = fc.array(
  fc.record<Row>({
    name: fc.oneof(
      fc.constantFrom('@', '', 'www', 'WWW', '-bad-', 'a..b', 'www.example.com', 'x'.repeat(80), '*'),
      fc.string({ unit: 'binary', maxLength: 12 }),
    ),
    type: fc.constantFrom<string>(...recordTypes, 'SRV', 'a', 'PTR'),
    address: fc.oneof(
      fc.constantFrom(
        '1.2.3.4',
        '999',
        'host.example.net.',
        'host.example.net',
        '',
        ' ',
        '0 issue "x"',
        '0 issue x',
        '2001:DB8::1',
        'http://u:p@x/',
        '"',
      ),
      fc.string({ unit: 'binary', maxLength: 30 }),
    ),
    ttl: fc.constantFrom('1800', '1', '', '99999', '1799', '0'),
    mxPref: fc.constantFrom('10', '0', '', '70000', '5'),
    dynamic: fc.boolean(),
  }),
  { maxLength: 30 },
)
/** Email types of a zone, unknown included. */
export const anyEmailType = fc.constantFrom('NONE', 'MX', 'MXE', 'FWD', 'OX', 'GMAIL', 'OTHER', undefined)
