import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readHttpDate } from '../../src/rfc9110/conditional-requests.ts'
import { type StaticService, startStatic } from '../support/static-start.ts'

// RFC 9110, 13: written from its text, over raw sockets. In the rows E is the file's tag, N the tag of another
// content, D its date, D-1 and D+1 a second before and after.

let service: StaticService
let own: Record<string, string>

beforeAll(async () => {
  service = await startStatic()
  await service.put('page.bin', 'content')
  const { headers } = await service.ask('/static/page.bin')
  const date = headers['last-modified'] ?? ''
  const shifted = (seconds: number) => new Date(Date.parse(date) + seconds * 1000).toUTCString()
  own = { E: headers.etag ?? '', N: '"0000"', D: date, 'D-1': shifted(-1), 'D+1': shifted(1) }
})
afterAll(() => service[Symbol.asyncDispose]())

const fill = (value: string) => value.replace(/\bE\b|\bN\b|\bD[+-]1|\bD\b/g, (name) => own[name] ?? '')

type Row = [fields: Record<string, string>, status: number, why: string]

const rows: Row[] = [
  [{}, 200, 'no condition'],

  [{ 'If-None-Match': 'E' }, 304, 'the tag matches (13.1.2)'],
  [{ 'If-None-Match': 'W/E' }, 304, 'the comparison is weak'],
  [{ 'If-None-Match': 'N' }, 200, 'another tag'],
  [{ 'If-None-Match': '*' }, 304, 'there is some content'],
  [{ 'If-None-Match': 'N, E' }, 304, 'one of several'],
  [{ 'If-None-Match': 'E,N' }, 304, 'one of several, without white space'],
  [{ 'If-None-Match': 'N,\tW/E , N' }, 304, 'one of several, with tabs and spaces'],
  [{ 'If-None-Match': ', ,E,' }, 304, 'empty elements of a list are skipped (5.6.1.2)'],
  [{ 'If-None-Match': '"a,b", E' }, 304, 'a comma may stand inside a tag (8.8.3)'],
  [{ 'If-None-Match': '"a, E"' }, 200, 'what looks like the tag inside of another is not it'],
  [{ 'If-None-Match': '"\xfc", E' }, 304, 'obs-text may stand inside a tag'],
  [{ 'If-None-Match': 'w/E' }, 200, 'the mark of weakness is case-sensitive'],
  [{ 'If-None-Match': '"*"' }, 200, 'a star in quotes is a tag'],
  [{ 'If-None-Match': '""' }, 200, 'the empty tag'],
  [{ 'If-None-Match': '' }, 200, 'an empty list matches nothing'],
  [{ 'If-None-Match': 'nonsense' }, 200, 'what is no tag matches nothing'],
  [{ 'If-None-Match': 'E-br' }, 200, 'a tag with more after it'],

  [{ 'If-Modified-Since': 'D' }, 304, 'not modified since its own date (13.1.3)'],
  [{ 'If-Modified-Since': 'D+1' }, 304, 'not modified since a later date'],
  [{ 'If-Modified-Since': 'D-1' }, 200, 'modified after that'],
  [{ 'If-Modified-Since': 'Fri, 31 Dec 2399 23:59:59 GMT' }, 304, 'a date in the future'],
  [{ 'If-Modified-Since': 'Sunday, 06-Nov-94 08:49:37 GMT' }, 200, 'RFC 850: long ago'],
  [{ 'If-Modified-Since': 'Sun Nov  6 08:49:37 1994' }, 200, 'asctime: long ago'],
  [{ 'If-Modified-Since': 'Sat Jan  1 00:00:00 2399' }, 304, 'asctime: in the future'],
  [{ 'If-Modified-Since': '2399-01-01T00:00:00Z' }, 200, 'no HTTP-date, so ignored'],
  [{ 'If-Modified-Since': 'Fri, 31 Dec 2399 23:59:59 UTC' }, 200, 'another zone is no HTTP-date'],
  [{ 'If-Modified-Since': 'Fri, 31 Feb 2399 23:59:59 GMT' }, 200, 'no such day'],
  [{ 'If-Modified-Since': 'Fri, 31 Dec 2399 24:00:00 GMT' }, 200, 'no such hour'],
  [{ 'If-Modified-Since': 'fri, 31 dec 2399 23:59:59 gmt' }, 200, 'dates are case-sensitive'],
  [{ 'If-Modified-Since': '32503680000' }, 200, 'a number is no date'],
  [{ 'If-Modified-Since': '' }, 200, 'nothing is no date'],

  [{ 'If-None-Match': 'N', 'If-Modified-Since': 'D' }, 200, 'with tags, dates are ignored (13.1.3)'],
  [{ 'If-None-Match': 'E', 'If-Modified-Since': 'D-1' }, 304, 'with tags, dates are ignored'],
  [{ 'If-None-Match': 'nonsense', 'If-Modified-Since': 'D' }, 200, 'also beside broken tags'],

  [{ 'If-Match': 'E' }, 200, 'the tag matches (13.1.1)'],
  [{ 'If-Match': '*' }, 200, 'there is some content'],
  [{ 'If-Match': 'N, E' }, 200, 'one of several'],
  [{ 'If-Match': 'N' }, 412, 'another tag'],
  [{ 'If-Match': 'W/E' }, 412, 'the comparison is strong'],
  [{ 'If-Match': 'N, W/E' }, 412, 'the comparison is strong in lists, too'],
  [{ 'If-Match': '' }, 412, 'an empty list matches nothing'],
  [{ 'If-Match': 'nonsense' }, 412, 'what is no tag matches nothing'],

  [{ 'If-Unmodified-Since': 'D' }, 200, 'not modified since its own date (13.1.4)'],
  [{ 'If-Unmodified-Since': 'D+1' }, 200, 'not modified since a later date'],
  [{ 'If-Unmodified-Since': 'D-1' }, 412, 'modified after that'],
  [{ 'If-Unmodified-Since': 'Sunday, 06-Nov-94 08:49:37 GMT' }, 412, 'RFC 850: modified after that'],
  [{ 'If-Unmodified-Since': '1994-11-06' }, 200, 'no HTTP-date, so ignored'],

  [{ 'If-Match': 'E', 'If-Unmodified-Since': 'D-1' }, 200, 'step 1 spares step 2 (13.2.2)'],
  [{ 'If-Match': 'N', 'If-Unmodified-Since': 'D' }, 412, 'step 1 fails'],
  [{ 'If-Match': 'E', 'If-None-Match': 'E' }, 304, 'step 3 after step 1'],
  [{ 'If-Match': 'N', 'If-None-Match': 'E' }, 412, 'step 1 before step 3'],
  [{ 'If-Match': 'E', 'If-Modified-Since': 'D' }, 304, 'step 4 after step 1'],
  [{ 'If-Unmodified-Since': 'D-1', 'If-None-Match': 'E' }, 412, 'step 2 before step 3'],
  [{ 'If-Unmodified-Since': 'D', 'If-Modified-Since': 'D' }, 304, 'step 4 after step 2'],
  [{ 'If-Unmodified-Since': 'D', 'If-None-Match': 'N' }, 200, 'all steps passed'],
]

const rowsWithRange: Row[] = [
  [{ 'If-None-Match': 'E' }, 304, 'step 3 before ranges'],
  [{ 'If-Modified-Since': 'D' }, 304, 'step 4 before ranges'],
  [{ 'If-Match': 'N' }, 412, 'step 1 before ranges'],
  [{ 'If-Match': 'E' }, 206, 'step 5 after step 1'],
  [{ 'If-Match': 'E', 'If-Range': 'N' }, 200, 'step 5 leaves the range out'],
  [{ 'If-None-Match': 'N', 'If-Range': 'E' }, 206, 'all steps passed'],
  [{ 'If-None-Match': 'E', 'If-Range': 'N' }, 304, 'step 3 before step 5'],
]

const bodies: Record<string, RegExp> = {
  'GET 200': /^content$/,
  'GET 412': /precondition_failed/,
}

describe.each(['GET', 'HEAD'])('%s', (method) => {
  test.each(rows)('with %o is a %i: %s', async (fields, status) => {
    const headers = Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, fill(text)]))

    const answer = await service.ask('/static/page.bin', headers, method)

    expect(answer.status).toBe(status)
    expect(answer.body.toString()).toMatch(bodies[`${method} ${status}`] ?? /^$/)
  })
})

test.each(rowsWithRange)('a range with %o is a %i: %s', async (fields, status) => {
  const headers = Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, fill(text)]))

  const answer = await service.ask('/static/page.bin', { Range: 'bytes=0-2', ...headers })

  expect(answer.status).toBe(status)
})

test.each([
  ['a 304 comes before a 416', 'E', 304],
  ['a 416 comes after all conditions', 'N', 416],
])('%s', async (_what, tag, status) => {
  const headers = { Range: 'bytes=100-', 'If-None-Match': fill(tag) }

  const answer = await service.ask('/static/page.bin', headers)

  expect(answer.status).toBe(status)
})

test('a condition on what is not there is a 404, not a 412 (13.2.1)', async () => {
  const answer = await service.ask('/static/absent.bin', { 'If-Match': '*' })

  expect(answer.status).toBe(404)
})

test('several fields of one name are one list', async () => {
  const answer = await service.send(
    `GET /static/page.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIf-None-Match: "x"\r\nIf-None-Match: ${own.E}\r\n\r\n`,
  )

  expect(answer.status).toBe(304)
})

test('a 304 carries what the 200 would, except what describes its body (15.4.5)', async () => {
  const target = `/static/page.bin?download&v=${own.E?.slice(1, 13)}`
  const { headers: whole } = await service.ask(target)

  const { headers } = await service.ask(target, { 'If-None-Match': own.E ?? '' })

  const { 'content-length': length, 'content-type': type, ...expected } = whole
  expect([length, type]).toEqual(['7', 'application/octet-stream'])
  expect(headers).toEqual({
    ...expected,
    date: expect.any(String),
    'x-request-id': expect.any(String),
  })
})

test('the tag is strong, and the same for equal bytes at any path', async () => {
  await service.put('copies/one.bin', 'equal')
  await service.put('copies/two.bin', 'equal')

  const one = await service.ask('/static/copies/one.bin')
  const two = await service.ask('/static/copies/two.bin')

  expect(one.headers.etag).toMatch(/^"[0-9a-f]{64}"$/)
  expect(two.headers.etag).toBe(one.headers.etag)
})

describe('an HTTP-date', () => {
  const now = Date.UTC(2026, 10, 20)
  const expected = Date.UTC(1994, 10, 6, 8, 49, 37) / 1000

  test.each<[string, number | undefined, string]>([
    ['Sun, 06 Nov 1994 08:49:37 GMT', expected, 'IMF-fixdate'],
    ['Sunday, 06-Nov-94 08:49:37 GMT', expected, 'RFC 850'],
    ['Sun Nov  6 08:49:37 1994', expected, 'asctime'],
    ['Sun Nov 16 08:49:37 1994', expected + 10 * 86_400, 'asctime with two digits'],
    ['Thursday, 31-Dec-76 00:00:00 GMT', Date.UTC(2076, 11, 31) / 1000, 'fifty years ahead'],
    ['Friday, 31-Dec-77 00:00:00 GMT', Date.UTC(1977, 11, 31) / 1000, 'more than that is past'],
    ['Thu, 29 Feb 2024 00:00:00 GMT', Date.UTC(2024, 1, 29) / 1000, 'a leap day'],
    ['Sat, 31 Dec 2016 23:59:60 GMT', Date.UTC(2017, 0, 1) / 1000, 'a leap second'],
    ['Wed, 29 Feb 2023 00:00:00 GMT', undefined, 'no leap day'],
    ['Sun, 6 Nov 1994 08:49:37 GMT', undefined, 'one digit in IMF-fixdate'],
    ['Sun, 06 Nov 94 08:49:37 GMT', undefined, 'two digits in IMF-fixdate'],
    ['Sun, 06 Nov 1994 08:49 GMT', undefined, 'no seconds'],
    ['Sun, 06 Nov 1994 08:49:37 +0000', undefined, 'a numeric zone'],
    ['Sun, 06 Nov 1994 08:60:37 GMT', undefined, 'no such minute'],
    ['06 Nov 1994 08:49:37 GMT', undefined, 'no weekday'],
  ])('%s is read as %s: %s', (text, seconds) => {
    const read = readHttpDate(text, now)

    expect(read).toBe(seconds)
  })
})
