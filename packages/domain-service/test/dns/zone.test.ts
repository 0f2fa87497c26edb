import { expect, test } from 'vitest'
import { resolveEmailType } from '../../src/dns/zone.ts'
import { row, www } from '../support/zones.ts'

const mx = row('@', 'MX', 'mx.example.net.')
const mxe = row('@', 'MXE', '192.0.2.7')

test.each([
  ['a first MX makes NONE MX', 'NONE', [], [mx], 'MX'],
  ['a first MXE makes NONE MXE', 'NONE', [], [mxe], 'MXE'],
  ['removing the last MX makes MX NONE', 'MX', [mx, www], [www], 'NONE'],
  ['removing the last MXE makes MXE NONE', 'MXE', [mxe], [], 'NONE'],
  ['an MX in place of the MXE makes MXE MX', 'MXE', [mxe], [mx], 'MX'],
  ['a record beside an MX keeps MX', 'MX', [mx], [mx, www], 'MX'],
  ['removing another record keeps MX without MX rows', 'MX', [www], [], 'MX'],
  ['a record other than MX keeps FWD', 'FWD', [], [www], 'FWD'],
  ['a record beside an MX that FWD has all the same keeps FWD', 'FWD', [mx], [mx, www], 'FWD'],
  ['a record beside its own MX keeps OX', 'OX', [mx], [mx, www], 'OX'],
  ['a first MX keeps GMAIL', 'GMAIL', [], [mx], 'GMAIL'],
  ['removing the last MX keeps GMAIL', 'GMAIL', [mx], [], 'GMAIL'],
  ['a record keeps a type outside the API', 'OTHER', [], [www], 'OTHER'],
])('%s', (_name, emailType, before, rows, expected) => {
  const resolved = resolveEmailType({
    requested: undefined,
    before: { emailType, rows: before },
    rows,
  })

  expect(resolved).toEqual({ emailType: expected })
})

test.each([
  ['FWD becomes MX', 'FWD', [], [mx], 'MX'],
  ['NONE becomes FWD', 'NONE', [], [], 'FWD'],
  ['OX becomes MX', 'OX', [mx], [mx], 'MX'],
  ['an unknown type becomes FWD', undefined, [], [www], 'FWD'],
])('on request %s', (_name, emailType, before, rows, requested) => {
  const resolved = resolveEmailType({ requested, before: { emailType, rows: before }, rows })

  expect(resolved).toEqual({ emailType: requested })
})

test.each([
  ['a first MX in a FWD zone', 'FWD', [], [mx], undefined, 'conflict'],
  ['a first MXE in a FWD zone', 'FWD', [], [mxe], undefined, 'conflict'],
  ['a first MXE in an OX zone', 'OX', [mx], [mxe], undefined, 'conflict'],
  ['a record in a zone of unknown email type', undefined, [], [www], undefined, 'conflict'],
  ['a record beside MX in a zone of unknown email type', undefined, [mx], [mx, www], undefined, 'conflict'],
  ['requesting NONE beside MX', 'MX', [mx], [mx], 'NONE', 'fault'],
  ['requesting FWD beside MX', 'NONE', [], [mx], 'FWD', 'fault'],
  ['requesting MX beside MXE', 'NONE', [], [mxe], 'MX', 'fault'],
  ['requesting MX without MX', 'NONE', [], [], 'MX', 'fault'],
  ['requesting a type outside the API', 'NONE', [], [], 'POST', 'fault'],
  ['requesting MXE without MXE', 'NONE', [], [www], 'MXE', 'fault'],
])('%s is refused', (_name, emailType, before, rows, requested, kind) => {
  const resolved = resolveEmailType({ requested, before: { emailType, rows: before }, rows })

  expect(resolved).toHaveProperty(kind)
})
