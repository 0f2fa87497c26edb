import assert from 'node:assert/strict'
import { until } from './step.ts'
import { ask, headerOf, type Side, type Told, upload } from './wire.ts'

// Headers of the proxy itself, and headers that differ between connections.
const hopByHop = new Set([
  'connection',
  'date',
  'keep-alive',
  'server',
  'transfer-encoding',
  'alt-svc',
  'strict-transport-security',
])

interface Sides {
  direct: Side
  proxied: Side
  token: { authorization: string }
}

/** Sends the same requests to the service and through the proxy; asserts equal responses. */
export async function compareFiles({ direct, proxied, token }: Sides): Promise<string> {
  const text = 'The quick brown fox jumps over the lazy dog.\n'
  const contents = {
    'small.txt': text,
    'large.txt': text.repeat(20_000),
    'page.html': `<p>${text.repeat(8000)}`,
    'noise.bin': Uint8Array.from({ length: 400_000 }, (_, at) => at % 251),
    'empty.bin': '',
  }
  for (const [name, content] of Object.entries(contents)) {
    const { status } = await upload(direct, token, `same/${name}`, Buffer.from(content))
    assert.ok([200, 201].includes(status))
  }
  // In the second of their upload files have no date (RFC 9110, 8.8.2.2).
  await until('the files have dates', async () => {
    const { headers } = await ask(direct, '/static/same/empty.bin')
    return headers.some(([name]) => name === 'last-modified') || undefined
  })
  const paths = Object.keys(contents).map((name) => `/static/same/${name}`)
  let count = 0
  for (const path of [...paths, '/static/same/none', '/static/same']) {
    const whole = await ask(direct, path, { headers: { 'accept-encoding': 'identity' } })
    for (const headers of requests(headerOf(whole, 'etag'), headerOf(whole, 'last-modified'))) {
      for (const method of ['GET', 'HEAD']) {
        const asked = { method, headers: { ...headers, 'x-request-id': 'the same' } }
        const [own, seen] = [await ask(direct, path, asked), await ask(proxied, path, asked)]
        assert.deepEqual(comparable(seen), comparable(own), `${method} ${path} ${JSON.stringify(headers)}`)
        count += 1
      }
    }
  }
  for (const query of ['?download', `?v=${'0'.repeat(9)}`, '?v=1&download=1', '?a=%2f%2F&b']) {
    const asked = { headers: { 'x-request-id': 'the same', 'accept-encoding': 'identity' } }
    const path = `/static/same/noise.bin${query}`
    assert.deepEqual(comparable(await ask(proxied, path, asked)), comparable(await ask(direct, path, asked)))
    count += 1
  }
  return `${count} requests`
}

const requests = (etag: string, date: string): Record<string, string>[] => [
  { 'accept-encoding': 'identity' },
  { range: 'bytes=0-99' },
  { range: 'bytes=300000-' },
  { range: 'bytes=-100' },
  { range: 'bytes=0-' },
  { range: 'bytes=0-99999999' },
  { range: 'bytes=99999999-' },
  { range: 'bytes=5-4' },
  { range: 'bytes=1-2,2-9' },
  { range: 'items=0-1' },
  { range: 'bytes=0-9', 'if-range': etag },
  { range: 'bytes=0-9', 'if-range': date },
  { range: 'bytes=0-9', 'if-range': '"other"' },
  { 'if-none-match': etag, 'accept-encoding': 'identity' },
  { 'if-none-match': '"other"', 'accept-encoding': 'identity' },
  { 'if-none-match': '*', 'accept-encoding': 'identity' },
  { 'if-modified-since': date, 'accept-encoding': 'identity' },
  { 'if-modified-since': 'Sun, 06 Nov 1994 08:49:37 GMT', 'accept-encoding': 'identity' },
  { 'if-match': etag, 'accept-encoding': 'identity' },
  { 'if-match': '"other"', 'accept-encoding': 'identity' },
  { 'if-unmodified-since': date, 'accept-encoding': 'identity' },
  { 'if-unmodified-since': 'Sun, 06 Nov 1994 08:49:37 GMT', 'accept-encoding': 'identity' },
  { range: 'bytes=0-9', 'if-match': etag },
  { range: 'bytes=0-9', 'if-none-match': etag },
]

function comparable(told: Told) {
  const { status, headers, body } = told
  // Each answer of several ranges has a boundary of its own.
  const [, boundary = '\0'] = /boundary=(\S+)$/.exec(headerOf(told, 'content-type')) ?? []
  const unbound = (text: string) => text.replaceAll(boundary, 'boundary')
  return {
    status,
    headers: headers.filter(([name]) => !hopByHop.has(name)).map(([name, value]) => [name, unbound(value)]),
    body: unbound(body.toString('latin1')),
  }
}
