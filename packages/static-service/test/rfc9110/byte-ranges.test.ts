import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Raw, type StaticService, startStatic } from '../support/static-start.ts'

// RFC 9110, 14: written from its text, over raw sockets. One file of ten bytes and an empty one; nothing changes them.

const content = '0123456789'
let service: StaticService
let etag: string
let lastModified: string

beforeAll(async () => {
  service = await startStatic()
  await service.put('ten.bin', content)
  await service.put('empty.bin', '')
  await service.put('thousand.bin', 'x'.repeat(1000))
  const { headers } = await service.ask('/static/ten.bin')
  etag = headers.etag ?? ''
  lastModified = headers['last-modified'] ?? ''
})
afterAll(() => service[Symbol.asyncDispose]())

describe('one range is answered with those bytes', () => {
  test.each([
    ['bytes=0-0', '0', 'the first byte'],
    ['bytes=0-4', '01234', 'both positions are inclusive (14.1.2)'],
    ['bytes=9-9', '9', 'the last byte'],
    ['bytes=5-', '56789', 'an open end means the end of the file'],
    ['bytes=0-', content, 'all of it is still a part'],
    ['bytes=0-9', content, 'all of it by its positions'],
    ['bytes=0-10', content, 'an end past the end means the end'],
    ['bytes=8-100', '89', 'an end far past the end means the end'],
    ['bytes=8-99999999999999999999999999', '89', 'a number larger than any machine word'],
    ['bytes=-1', '9', 'a suffix of one byte'],
    ['bytes=-3', '789', 'a suffix counts from the end'],
    ['bytes=-10', content, 'a suffix as long as the file'],
    ['bytes=-11', content, 'a suffix longer than the file means all of it'],
    ['bytes=-99999999999999999999999999', content, 'a suffix larger than any machine word'],
    ['Bytes=1-2', '12', 'units are case-insensitive (14.1)'],
    ['BYTES=1-2', '12', 'units are case-insensitive (14.1)'],
    ['bytes=007-008', '78', 'zeros before a number mean nothing'],
    ['bytes=1-2,', '12', 'an empty element at the end is no element (5.6.1.2)'],
    ['bytes=,1-2', '12', 'an empty element at the start is no element'],
    ['bytes=, ,1-2', '12', 'empty elements with white space are no elements'],
    ['bytes=1-2 ', '12', 'white space at the end belongs to no field'],
    ['bytes=1-2,20-30', '12', 'an unsatisfiable range beside a satisfiable one is left out'],
    ['bytes=20-30,-2', '89', 'an unsatisfiable range before a satisfiable one is left out'],
    ['bytes=-0,3-4', '34', 'an empty suffix beside a satisfiable range is left out'],
  ])('%s is %s: %s', async (range, expected) => {
    const first = content.indexOf(expected)

    const answer = await service.ask('/static/ten.bin', { Range: range })

    expect(answer.status).toBe(206)
    expect(answer.body.toString()).toBe(expected)
    expect(answer.headers).toMatchObject({
      'content-range': `bytes ${first}-${first + expected.length - 1}/10`,
      'content-length': String(expected.length),
      'content-type': 'application/octet-stream',
      'accept-ranges': 'bytes',
      'last-modified': lastModified,
      etag,
    })
  })
})

describe('a range that is not to be understood is ignored', () => {
  test.each([
    ['bytes', 'there is no set'],
    ['bytes=', 'the set is empty'],
    ['bytes=,', 'a list must have an element'],
    ['bytes= , ,', 'white space is no element'],
    ['bytes=-', 'neither position is there'],
    ['bytes=5', 'a position alone is no range'],
    ['bytes=5-4', 'the last position stands before the first (14.1.1)'],
    ['bytes=0-1,5-4', 'one invalid range spoils the set'],
    ['bytes=0-1,x', 'one element that is no range spoils the set'],
    ['bytes=99999999999999999999-99999999999999999998', 'also where a double cannot tell them apart'],
    ['bytes=a-b', 'letters'],
    ['bytes=0x1-2', 'no hexadecimal numbers'],
    ['bytes=+1-2', 'no signs'],
    ['bytes=1.0-2', 'no fractions'],
    ['bytes=--1', 'no negative numbers'],
    ['bytes=1--2', 'no negative numbers'],
    ['bytes=1-2-3', 'three positions'],
    ['bytes=1 -2', 'no white space inside a range'],
    ['bytes=1- 2', 'no white space inside a range'],
    ['bytes= 1-2', 'no white space after the equals sign'],
    ['bytes =1-2', 'no white space before the equals sign'],
    ['bytes:1-2', 'no colon'],
    ['bytes=1-2;3-4', 'ranges are separated by commas'],
    ['bytes=1-2\xa0', 'a no-break space is no white space'],
    ['1-2', 'there is no unit'],
    ['=1-2', 'the unit is empty'],
    ['items=1-2', 'the unit is unknown (14.2)'],
    ['seconds=1-2', 'the unit is unknown'],
    ['xbytes=1-2', 'the unit is unknown'],
    ['none', 'the unit that means no ranges'],
    ['bytes=0-,0-', 'more bytes are wanted than there are (14.2, 17.15)'],
    ['bytes=0-,1-,2-,3-,4-', 'more bytes are wanted than there are'],
    ['bytes=0-5,3-8,-2,0-0', 'more bytes are wanted than there are, by small pieces'],
  ])('%s: %s', async (range) => {
    const answer = await service.ask('/static/ten.bin', { Range: range })

    expect(answer.status).toBe(200)
    expect(answer.body.toString()).toBe(content)
    expect(answer.headers['content-range']).toBeUndefined()
    expect(answer.headers).toMatchObject({ 'content-length': '10', 'accept-ranges': 'bytes' })
  })

  test('A Range field sent twice is not two ranges', async () => {
    const answer = await service.send(
      'GET /static/ten.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRange: bytes=0-1\r\nRange: bytes=3-4\r\n\r\n',
    )

    expect([answer.status, answer.body.toString()]).toEqual([200, content])
  })

  test('A hundred ranges are served, one more is too many', async () => {
    const set = (count: number) => Array.from({ length: count }, (_, at) => `${at * 2}-${at * 2}`)

    const most = await service.ask('/static/thousand.bin', { Range: `bytes=${set(100)}` })
    const tooMany = await service.ask('/static/thousand.bin', { Range: `bytes=${set(101)}` })

    expect(most.status).toBe(206)
    expect(partsOf(most)).toHaveLength(100)
    expect(tooMany.status).toBe(200)
  })
})

describe('a range of which no byte exists is a 416', () => {
  test.each([
    ['ten.bin', 'bytes=10-', 'the first position is one past the last'],
    ['ten.bin', 'bytes=10-20', 'both positions are past the end'],
    ['ten.bin', 'bytes=99999999999999999999999999-', 'a position larger than any machine word'],
    ['ten.bin', 'bytes=-0', 'an empty suffix'],
    ['ten.bin', 'bytes=10-,20-30,-0', 'none of several exists'],
    ['empty.bin', 'bytes=0-', 'an empty file has no first byte'],
    ['empty.bin', 'bytes=0-0', 'an empty file has no first byte'],
    ['empty.bin', 'bytes=-0', 'an empty suffix of an empty file'],
  ])('%s %s: %s', async (name, range) => {
    const size = name === 'ten.bin' ? 10 : 0

    const answer = await service.ask(`/static/${name}`, { Range: range })

    expect(answer.status).toBe(416)
    expect(answer.headers).toMatchObject({
      'content-range': `bytes */${size}`,
      'content-type': 'application/problem+json',
    })
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers.etag).toBeUndefined()
    expect(JSON.parse(answer.body.toString())).toMatchObject({ code: 'range_not_satisfiable' })
  })

  test('A suffix of an empty file is satisfiable, and answered whole', async () => {
    const answer = await service.ask('/static/empty.bin', { Range: 'bytes=-5' })

    expect([answer.status, answer.headers['content-length']]).toEqual([200, '0'])
  })
})

describe('several ranges are answered as multipart/byteranges', () => {
  test.each([
    ['bytes=0-1,4-5', ['01', '45'], 'two apart'],
    ['bytes=4-5,0-1', ['45', '01'], 'in the order that was asked for (15.3.7.2)'],
    ['bytes=0-0,-1', ['0', '9'], 'the first and the last byte'],
    ['bytes=0-1,2-3', ['01', '23'], 'neighbours do not overlap'],
    ['bytes=0-0, 2-2,\t4-4', ['0', '2', '4'], 'white space around commas'],
    ['bytes=0-0,,2-2', ['0', '2'], 'an empty element between'],
    ['bytes=0-1,50-60,8-9', ['01', '89'], 'without those that do not exist'],
    ['bytes=0-2,6-7,1-3', ['012', '67', '123'], 'those that overlap are parts of their own'],
    ['bytes=8-9,0-1,4-5', ['89', '01', '45'], 'three in no order'],
  ])('%s is %s: %s', async (range, expected) => {
    const answer = await service.ask('/static/ten.bin', { Range: range })

    expect(answer.status).toBe(206)
    expect(answer.headers['content-range']).toBeUndefined()
    expect(answer.headers.etag).toBe(etag)
    expect(Number(answer.headers['content-length'])).toBe(answer.body.length)
    expect(partsOf(answer)).toEqual(
      expected.map((bytes) => ({
        type: 'application/octet-stream',
        range: `bytes ${content.indexOf(bytes)}-${content.indexOf(bytes) + bytes.length - 1}/10`,
        bytes,
      })),
    )
  })
})

describe('If-Range decides whether a part may be sent', () => {
  const later = () => new Date(Date.parse(lastModified) + 1000).toUTCString()
  const earlier = () => new Date(Date.parse(lastModified) - 1000).toUTCString()

  test.each([
    ['the strong tag of the file', () => etag, 206],
    ['the tag of another content', () => '"0000"', 200],
    ['the tag as a weak one, which never matches strongly', () => `W/${etag}`, 200],
    ['the tag of a compressed form', () => etag.replace(/"$/, '-br"'), 200],
    ['the tag without its quotes', () => etag.slice(1, -1), 200],
    ['a list of tags, which is not allowed here', () => `"0000", ${etag}`, 200],
    ['a star, which is not allowed here', () => '*', 200],
    ['the exact date', () => lastModified, 206],
    ['the exact date in the form of RFC 850', () => asRfc850(lastModified), 206],
    ['a later date, which is not exact', later, 200],
    ['an earlier date', earlier, 200],
    ['a date in a form of ISO', () => new Date(lastModified).toISOString(), 200],
    ['nonsense', () => 'yesterday', 200],
  ])('%s', async (_what, value, status) => {
    const answer = await service.ask('/static/ten.bin', { Range: 'bytes=2-3', 'If-Range': value() })

    expect(answer.status).toBe(status)
    expect(answer.body.toString()).toBe(status === 206 ? '23' : content)
  })

  test('An unsatisfiable range whose If-Range does not match is no failure', async () => {
    const answer = await service.ask('/static/ten.bin', { Range: 'bytes=50-', 'If-Range': '"0"' })

    expect(answer.status).toBe(200)
  })

  test('If-Range without Range means nothing', async () => {
    const answer = await service.ask('/static/ten.bin', { 'If-Range': etag })

    expect(answer.status).toBe(200)
  })
})

describe('methods and versions', () => {
  test('HEAD has no ranges (14.2)', async () => {
    const answer = await service.ask('/static/ten.bin', { Range: 'bytes=0-1' }, 'HEAD')

    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({ 'content-length': '10', 'accept-ranges': 'bytes' })
    expect(answer.body).toHaveLength(0)
  })

  test('HEAD of a range that does not exist is no failure', async () => {
    const answer = await service.ask('/static/ten.bin', { Range: 'bytes=50-' }, 'HEAD')

    expect(answer.status).toBe(200)
  })

  test('Another method of a known path is a 405 that says which are known', async () => {
    const answer = await service.ask('/static/ten.bin', {}, 'DELETE')

    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD'])
  })
})

const asRfc850 = (date: string) => {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) \d\d(\d\d) (\S+) GMT$/.exec(date) ?? []
  const weekday = new Date(date).toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })
  return `${weekday}, ${day}-${month}-${year} ${time} GMT`
}

/** Takes a multipart/byteranges body apart by its grammar (RFC 2046, 5.1.1); nothing may be left over. */
function partsOf({ headers, body }: Raw) {
  const boundary = /^multipart\/byteranges; boundary=([\w-]{1,70})$/.exec(headers['content-type'] ?? '')?.[1]
  const text = `\r\n${body.toString('latin1')}`
  const [before, ...parts] = text.split(`\r\n--${boundary}`)
  expect([before, parts.pop()]).toEqual(['', '--\r\n'])
  return parts.map((part) => {
    const [, type, range, bytes] = /^\r\ncontent-type: (.*)\r\ncontent-range: (.*)\r\n\r\n([\s\S]*)$/.exec(part) ?? []
    return { type, range, bytes }
  })
}
