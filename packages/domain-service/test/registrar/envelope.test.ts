import { HttpError } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { requireSuccess } from '../../src/registrar/responses.ts'
import { readEnvelope } from '../../src/registrar/transport.ts'
import { failureOf, getHosts, getInfo, getList, getServers, setHosts } from '../support/expected.ts'
import { answer, refusal } from '../support/responses.ts'

test.each([
  ['1011102', getHosts, 'auth', 502, 'registrar_auth'],
  ['1011150', getHosts, 'auth', 502, 'registrar_auth'],
  ['1017411', setHosts, 'auth', 502, 'registrar_auth'],
  ['1030408', getList, 'auth', 502, 'registrar_auth'],
  ['1050900', getList, 'auth', 502, 'registrar_auth'],
  ['500000', getHosts, 'busy', 503, 'registrar_busy'],
  ['2019166', getHosts, 'refused', 404, 'domain_not_found'],
  ['2016166', getServers, 'refused', 404, 'domain_not_found'],
  ['3016166', getHosts, 'refused', 404, 'domain_not_found'],
  ['2030166', getInfo, 'refused', 404, 'domain_not_found'],
  ['2030166', setHosts, 'refused', 403, 'domain_not_editable'],
  ['4011103', setHosts, 'refused', 403, 'domain_not_editable'],
  ['2030288', setHosts, 'refused', 409, 'dns_not_managed'],
  ['3013288', setHosts, 'refused', 422, 'too_many_records'],
  ['4013288', setHosts, 'refused', 422, 'too_many_records'],
  ['2010166', getInfo, 'refused', 422, 'registrar_rejected'],
  ['2011170', setHosts, 'refused', 422, 'registrar_rejected'],
  ['2013275', getList, 'refused', 422, 'registrar_rejected'],
  ['2019103', getList, 'refused', 422, 'registrar_rejected'],
  ['3050900', getHosts, 'unknown', 502, 'registrar_error'],
  ['5019169', getList, 'unknown', 502, 'registrar_error'],
  ['5050169', getList, 'unknown', 502, 'registrar_error'],
  ['5050900', getHosts, 'unknown', 502, 'registrar_error'],
  ['3031510', getHosts, 'doubtful', 502, 'registrar_error'],
  ['9999999', getHosts, 'doubtful', 502, 'registrar_error'],
] as const)('error %s of $command is %s', (number, expected, kind, status, code) => {
  const skeleton = `<CommandResponse Type="${expected.command}"><${expected.result} Domain="example.com" IsSuccess="true" EmailType=""/></CommandResponse>`

  const failure = failureOf(() => readEnvelope(refusal(number, 'secret words', skeleton), expected))

  expect(failure).toMatchObject({ kind, number, status, code })
  expect(failure).toBeInstanceOf(HttpError)
})

test('of several errors the most specific one decides', () => {
  const text = refusal('9999999', 'x').replace('</Errors>', '<Error Number="2019166">not found</Error></Errors>')

  expect(failureOf(() => readEnvelope(text, getHosts)).code).toBe('domain_not_found')
})

test('errors after an empty list of them count, and quote no key', () => {
  const words = 'Parameter ApiKey=k3y-of-the-account is not allowed'
  const text = answer(setHosts.command, `<${setHosts.result} Domain="example.com" IsSuccess="true"/>`)
  const refused = text.replace(
    '</ApiResponse>',
    `<Errors><Error Number="2011170">${words}</Error></Errors></ApiResponse>`,
  )

  const failure = failureOf(() => readEnvelope(refused, setHosts, 'k3y-of-the-account'))

  expect(failure.code).toBe('registrar_rejected')
  expect(failure.message).toContain('Parameter ApiKey=… is not allowed')
})

test('an error is one beside status OK too', () => {
  const result = `<CommandResponse><${setHosts.result} Domain="example.com" IsSuccess="true"/></CommandResponse>`
  const text = refusal('2019166', 'not found', result).replace('Status="ERROR"', 'Status="OK"')

  expect(text).toContain('Status="OK"')
  expect(failureOf(() => readEnvelope(text, setHosts)).code).toBe('domain_not_found')
})

test('the words of a rejection are passed on, printable and shortened', () => {
  const text = refusal('2011170', `TTL\u0085is ${'bad '.repeat(200)}`)

  const { message } = failureOf(() => readEnvelope(text, setHosts))
  expect(message).toMatch(/^The registrar refused this: TTL is bad bad/)
  expect(message.length).toBeLessThan(400)
})

test.each([
  [
    'status OK and IsSuccess=false',
    answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="false"/>'),
  ],
  ['status OK without IsSuccess', answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.com"/>')],
  [
    'success of another domain',
    answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.net" IsSuccess="true"/>'),
  ],
  [
    'an error without a reason',
    answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="true"/>', 'ERROR'),
  ],
  ['no status', answer(setHosts.command, '<DomainDNSSetHostsResult Domain="example.com" IsSuccess="true"/>', '')],
])('a write answered with %s may have been done', (_name, text) => {
  const failure = failureOf(() => requireSuccess(readEnvelope(text, setHosts).result, 'example.com'))

  expect(failure.kind).toBe('unknown')
})

test.each([
  ['Parameter Address57 is invalid', [56]],
  ['HOSTNAME3 and TTL1 are invalid', [0, 2]],
  ['RecordType12: unknown type; MXPref12 is missing', [11]],
  ['Address0 and Address are no rows, nor is MyAddress7', []],
])('the words %j name rows %j', (words, rowIndexes) => {
  const failure = failureOf(() => readEnvelope(refusal('2011288', words), setHosts))

  expect(failure).toMatchObject({ kind: 'refused', rowIndexes })
})

test('all errors of one answer name rows', () => {
  const text = refusal('2011288', 'Address5 is invalid').replace(
    '</Errors>',
    '<Error Number="2011288">Address2 is invalid</Error></Errors>',
  )

  expect(failureOf(() => readEnvelope(text, setHosts)).rowIndexes).toEqual([1, 4])
})

test.each([
  ['CommandResponse', `Type="${getHosts.command}"`, `Type="${getInfo.command}"`],
  ['RequestedCommand', getHosts.command.toLowerCase(), getInfo.command.toLowerCase()],
])('an answer of which %s names another command is none', (_element, own, other) => {
  const text = answer(getHosts.command, `<${getHosts.result} Domain="example.com" IsUsingOurDNS="true"/>`)

  expect(readEnvelope(text, getHosts).result.attributes.Domain).toBe('example.com')
  expect(failureOf(() => readEnvelope(text.replace(own, other), getHosts)).code).toBe('registrar_bad_answer')
})

test.each([
  ['an error', true, refusal('3050900', 'Unknown error')],
  ['a status without a reason', true, answer(getHosts.command, '', 'ERROR')],
  ['an answer to another command', false, answer(getInfo.command, '')],
  ['HTML', false, '<html></html>'],
])('%s shows that the registrar works: %j', (_what, isAnswer, text) => {
  const failure = failureOf(() => readEnvelope(text, getHosts))

  expect(failure).toMatchObject({ kind: 'unknown', isAnswer })
})
