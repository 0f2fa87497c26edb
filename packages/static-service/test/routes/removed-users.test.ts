import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { password } from '../../../../test/support/test-users.ts'
import { ask, boundary, logIn, type Service, start, writeForm } from '../support/start.ts'

interface Sent {
  method: string
  path: string
  headers?: Record<string, string>
  body: Buffer | string
}

/** Begins a request and resolves once its body is being received. @returns what sends it, and resolves with the status. */
async function begin(port: number, token: string, { method, path, headers, body }: Sent) {
  const sent = request({
    port,
    host: '127.0.0.1',
    method,
    path,
    agent: false,
    headers: {
      authorization: `Bearer ${token}`,
      expect: '100-continue',
      ...headers,
      'content-length': Buffer.byteLength(body),
    },
  })
  sent.flushHeaders()
  const responded = once(sent, 'response')
  await once(sent, 'continue')
  return async () => {
    sent.end(body)
    const [response] = await responded
    await text(response)
    return response.statusCode
  }
}

const content = 'text of a file'
const sha256 = createHash('sha256').update(content).digest('hex')
const tus = { 'tus-resumable': '1.0.0' }

async function beginUpload({ port }: Service, token: string): Promise<string> {
  const metadata = `path ${Buffer.from('new.txt').toString('base64')}`
  const sent = request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/api/uploads/',
    agent: false,
    headers: {
      ...tus,
      authorization: `Bearer ${token}`,
      'upload-metadata': metadata,
      'upload-length': content.length,
    },
  }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  return response.headers.location
}

const form = { 'content-type': `multipart/form-data; boundary=${boundary}` }
const ways: [string, (service: Service, token: string) => Sent | Promise<Sent>][] = [
  ['PUT', () => ({ method: 'PUT', path: '/api/files/new.txt', body: content })],
  [
    'a form',
    () => ({
      method: 'POST',
      path: '/api/files/upload',
      headers: form,
      body: writeForm([{ name: 'file', content, filename: 'new.txt' }]),
    }),
  ],
  [
    'a form of several files',
    () => ({
      method: 'POST',
      path: '/api/files/upload/batch',
      headers: form,
      body: writeForm([{ name: 'files', content, filename: 'new.txt' }]),
    }),
  ],
  ['a tree', () => ({ method: 'PUT', path: '/api/trees/copy/', body: '{ "from": "kept/" }' })],
  ['a content', () => ({ method: 'PUT', path: `/api/contents/${sha256}`, body: content })],
  [
    'a resumable upload',
    async (service, token) => ({
      method: 'PATCH',
      path: await beginUpload(service, token),
      body: content,
      headers: { ...tus, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
    }),
  ],
]

test('a user is not the owner of the unfinished uploads of an earlier user of that name', async () => {
  await using service = await start()
  const headOf = async (url: string, token: string) => {
    const { status } = await ask(service.port, {
      method: 'HEAD',
      path: url,
      headers: { ...tus, authorization: `Bearer ${token}` },
    })
    return status
  }
  const addEve = () => service.call('POST', '/api/users', { json: { username: 'eve', role: 'editor', password } })
  const addToken = async (session: string) => {
    const { bytes } = await service.call('POST', '/api/tokens', {
      json: { name: 'ci', role: 'editor' },
      user: 'nobody',
      headers: { authorization: `Bearer ${session}` },
    })
    return JSON.parse(bytes.toString()).token
  }
  await addEve()
  const first = await logIn(service.port, 'eve')
  const urls = [await beginUpload(service, first), await beginUpload(service, await addToken(first))]
  const before = await Promise.all(urls.map((url) => headOf(url, first)))

  await service.call('DELETE', '/api/users/eve')
  await addEve()
  const second = await logIn(service.port, 'eve')
  const tokens = [second, await addToken(second)]
  const after = await Promise.all(urls.flatMap((url) => tokens.map((token) => headOf(url, token))))

  expect([before, after]).toEqual([
    [200, 200],
    [404, 404, 404, 404],
  ])
})

test.each(ways)('%s stores nothing for a user who is removed before its end', async (_way, make) => {
  await using service = await start()
  await service.put('kept/file.txt')
  const before = await service.call('GET', '/api/files/')
  const eve = { username: 'eve', role: 'editor', password }
  await service.call('POST', '/api/users', { json: eve })
  const token = await logIn(service.port, 'eve')
  const finish = await begin(service.port, token, await make(service, token))
  await service.call('DELETE', '/api/users/eve')

  const status = await finish()
  const after = await service.call('GET', '/api/files/')
  const known = await service.call('PUT', `/api/contents/${sha256}`, { body: content })

  expect([status, known.status]).toEqual([401, 201])
  expect(after.bytes).toEqual(before.bytes)
})
