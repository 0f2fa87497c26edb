import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readEnv, serverSettings } from '../../src/index.ts'
import { start } from '../support/start.ts'

const schema = z.object(serverSettings({ port: 3001, dataDir: 'data' }))

const readTrustProxy = (text: string) => readEnv(schema, { TRUST_PROXY: text }).TRUST_PROXY

/** Whom the log names when a request comes from an address with these fields. */
async function clientOf(trust: string, from: string, fields: Record<string, string | string[]>) {
  await using service = await start({ trustProxy: readTrustProxy(trust) })
  const asked = request(`${service.url}/things`, { localAddress: from, headers: fields })
  asked.end()
  const [answer]: IncomingMessage[] = await once(asked, 'response')
  answer?.resume()
  const isRequest = (line: Record<string, unknown>) => line.msg === 'request completed'
  await expect.poll(() => service.lines().filter(isRequest)).toHaveLength(1)
  return service.lines().find(isRequest)?.client
}

const proxy = '127.0.0.1'
const other = '127.0.0.2'

describe('the client is the last address that is not that of a trusted proxy', () => {
  test.each([
    ['', proxy, '203.0.113.7', proxy, 'by default no proxy is trusted'],
    ['false', proxy, '203.0.113.7', proxy, 'no proxy is trusted'],
    ['0', proxy, '203.0.113.7', proxy, 'no hop is believed'],

    ['1', proxy, '203.0.113.7', '203.0.113.7', 'the nearest hop is believed'],
    ['1', proxy, '198.51.100.9, 203.0.113.7', '203.0.113.7', 'not what the client wrote before it'],
    ['1', proxy, '127.0.0.1, 203.0.113.7', '203.0.113.7', 'also where it names this machine'],
    ['2', proxy, '203.0.113.7, 10.0.0.1', '203.0.113.7', 'two hops are believed'],
    ['2', proxy, '198.51.100.9, 203.0.113.7, 10.0.0.1', '203.0.113.7', 'not what stood before'],
    ['2', proxy, '203.0.113.7', '203.0.113.7', 'fewer hops than are believed'],
    ['1', proxy, '', proxy, 'an empty field names no client'],

    ['127.0.0.1', proxy, '203.0.113.7', '203.0.113.7', 'the proxy by its address'],
    ['127.0.0.1', other, '203.0.113.7', other, 'not from another address'],
    ['127.0.0.1', proxy, '198.51.100.9, 203.0.113.7', '203.0.113.7', 'not what the client wrote'],
    ['127.0.0.1', proxy, '198.51.100.9, 127.0.0.1', '198.51.100.9', 'a chain of trusted ones'],
    ['127.0.0.1', proxy, 'nonsense', 'nonsense', 'what the proxy says is taken as it is'],
    ['127.0.0.1', proxy, '203.0.113.7, nonsense', 'nonsense', 'nonsense is trusted no further'],
    ['127.0.0.0/8', other, '203.0.113.7', '203.0.113.7', 'a network'],
    ['127.0.0.0/31', other, '203.0.113.7', other, 'an address just outside of a network'],
    ['10.0.0.0/8, 127.0.0.1', proxy, '203.0.113.7, 10.9.8.7', '203.0.113.7', 'several of them'],
    ['10.0.0.0/8', proxy, '203.0.113.7, 10.9.8.7', proxy, 'only of what speaks to us itself'],
    ['loopback', other, '203.0.113.7', '203.0.113.7', 'the networks of this machine, by name'],
    ['::1, 127.0.0.1', proxy, '2001:db8::1', '2001:db8::1', 'addresses of both kinds'],
    ['2001:db8::/32,loopback', proxy, '::1:2, 2001:db8::5', '::1:2', 'a network of IPv6'],

    ['true', proxy, '198.51.100.9, 203.0.113.7', '198.51.100.9', 'everybody: also the client'],
  ])('TRUST_PROXY=%s, from %s, for %s: %s, %s', async (trust, from, field, expected) => {
    const client = await clientOf(trust, from, { 'x-forwarded-for': field })

    expect(client).toBe(expected)
  })

  test('a field that is sent twice is one list', async () => {
    const fields = { 'x-forwarded-for': ['198.51.100.9', '203.0.113.7'] }

    expect(await clientOf('1', proxy, fields)).toBe('203.0.113.7')
  })

  test.each(['forwarded', 'x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip'])(
    'the field %s is ignored, whatever is trusted',
    async (name) => {
      const fields = { [name]: name === 'forwarded' ? 'for=203.0.113.7' : '203.0.113.7' }

      expect(await clientOf('true', proxy, fields)).toBe(proxy)
    },
  )
})

test.each([
  ['yes', 'no such word'],
  ['TRUE', 'words are in lower case'],
  ['-1', 'a negative number'],
  ['1.5', 'half a hop'],
  ['localhost', 'a name, which is not resolved'],
  ['10.0.0', 'half an address'],
  ['10.0.0.0/33', 'more bits than there are'],
  ['10.0.0.0/0', 'everybody, by the back door'],
  ['10.0.0.0/8/8', 'two lengths'],
  ['10.0.0.0/', 'no length'],
  ['::/129', 'more bits than there are'],
  ['127.0.0.1, nonsense', 'one of several'],
  [',', 'an empty list'],
])('TRUST_PROXY=%s is refused: %s', (text) => {
  expect(() => readTrustProxy(text)).toThrow(
    'TRUST_PROXY: must be true, false, a number of hops, or addresses such as 10.0.0.0/8',
  )
})

test.each([
  ['203.0.113.7:4711', '203.0.113.7'],
  ['[2001:db8::1]:4711', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['2001:db8::1', '2001:db8::1'],
  ['198.51.100.9:80, 203.0.113.7:4711', '203.0.113.7'],
])('a port in X-Forwarded-For: %s is not part of the address', async (field, client) => {
  expect(await clientOf('1', proxy, { 'x-forwarded-for': field })).toBe(client)
})
