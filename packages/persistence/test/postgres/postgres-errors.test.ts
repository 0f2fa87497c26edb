import { expect, it } from 'vitest'
import { isOutcomeCertain, translateError } from '../../src/errors.ts'
import { DatabaseFullError, DatabaseUnavailableError } from '../../src/index.ts'

const fromServer = (code: string) => Object.assign(new Error('x'), { severity: 'ERROR', code })

it.each([
  ['too many connections', '53300'],
  ['a connection limit of the role', '53400'],
  ['a shutdown by the administrator', '57P01'],
  ['a crash of another connection', '57P02'],
  ['a server that is starting', '57P03'],
  ['a statement cancelled by its time limit', '57014'],
  ['a transaction ended for being idle', '25P03'],
  ['a standby that cannot write', '25006'],
  ['a protocol error of a pooler', '08P01'],
  ['an I/O error', '58030'],
])('%s is unavailability, and at COMMIT the outcome is uncertain', (_name, code) => {
  expect(translateError(fromServer(code))).toBeInstanceOf(DatabaseUnavailableError)
  expect(isOutcomeCertain(fromServer(code))).toBe(false)
})

it.each([
  Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
  new Error('Connection terminated unexpectedly'),
  new Error('Query read timeout'),
  new Error('timeout exceeded when trying to connect'),
])('a lost connection is unavailability, and at COMMIT the outcome is uncertain: %s', (error) => {
  expect(translateError(error)).toBeInstanceOf(DatabaseUnavailableError)
  expect(isOutcomeCertain(error)).toBe(false)
})

it('a full disk is reported as such, and nothing was committed', () => {
  expect(translateError(fromServer('53100'))).toBeInstanceOf(DatabaseFullError)
  expect(isOutcomeCertain(fromServer('53100'))).toBe(true)
})

it.each([fromServer('23505'), fromServer('25P02'), new TypeError('a bug')])(
  'an error of a statement or of the code is passed on: %s',
  (error) => {
    expect(translateError(error)).toBe(error)
  },
)
