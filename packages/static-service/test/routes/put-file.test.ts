import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { emptyService } from '../support/empty-service.ts'
import { type Service, start } from '../support/start.ts'
import { makeTar } from '../support/tar.ts'

const sha256 = (content: string) => createHash('sha256').update(content).digest('base64')

const put = (service: Service, path: string, body: string, headers: Record<string, string> = {}) =>
  service.call('PUT', `/api/files/${path}`, { body, headers })

test('the body of a PUT is the file, and its record is answered', async () => {
  await using service = await emptyService()

  const created = await put(service, 'img/%D0%B6%20a.txt', 'hello')
  const replaced = await put(service, 'img/%D0%B6%20a.txt', 'other')

  expect([created.status, created.headers.location]).toEqual([201, '/api/files/img/%D0%B6%20a.txt'])
  expect(created.body).toMatchObject({
    path: 'img/ж a.txt',
    content_type: 'text/plain',
    size: 5,
    sha256: createHash('sha256').update('hello').digest('hex'),
    uploaded_by: 'admin',
  })
  expect([replaced.status, replaced.body.created_at]).toEqual([200, created.body.created_at])
  const { headers } = await service.call('GET', String(created.headers.location))
  expect(headers.etag).toMatch(/^"/)
  expect([created.headers.etag === headers.etag, replaced.headers.etag]).toEqual([false, headers.etag])
  const served = await service.call('GET', '/static/img/%D0%B6%20a.txt')
  expect(served.bytes.toString()).toBe('other')
})

test.each([
  'text/html',
  'application/json',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  'nonsense',
  '',
])('a PUT of the content type %j is stored as it is', async (type) => {
  await using service = await emptyService()

  const { status, body } = await put(service, 'a.txt', '{"not json', { 'content-type': type })

  expect([status, body.size, body.content_type]).toEqual([201, 10, 'text/plain'])
})

test('a PUT without a content type, and one without a body, are stored', async () => {
  await using service = await emptyService()

  const plain = await put(service, 'a', 'x')
  const empty = await service.call('PUT', '/api/files/b')

  expect([plain.status, empty.status, empty.body.size]).toEqual([201, 201, 0])
})

test('a chunked PUT of a large file is stored whole', async () => {
  await using service = await emptyService()
  const bytes = Buffer.alloc(3_000_000, 'chunked ')
  const sent = request({
    port: service.port,
    host: '127.0.0.1',
    method: 'PUT',
    path: '/api/files/large.bin',
    headers: {
      authorization: `Bearer ${await service.tokenOf('admin')}`,
      'transfer-encoding': 'chunked',
    },
  })

  sent.write(bytes.subarray(0, 1_000_001))
  sent.end(bytes.subarray(1_000_001))
  const [response] = await once(sent, 'response')

  expect(response.statusCode).toBe(201)
  await text(response)
  const served = await service.call('GET', '/static/large.bin')
  expect(served.bytes.equals(bytes)).toBe(true)
})

test.each([
  ['Content-Digest', `sha-256=:${sha256('content')}:`],
  ['Repr-Digest', `sha-512=:AAAA:, sha-256=:${sha256('content')}:`],
  ['Content-Digest', 'sha-512=:AAAA:'],
  ['Content-Digest', `unixsum=:AAAA:,sha-256=:${sha256('content')}:`],
  ['Content-Digest', `unixsum=:AAAA:;a, sha-256=:${sha256('content')}:;x=1; y="z"`],
])('a PUT with a matching %s is stored: %s', async (field, value) => {
  await using service = await emptyService()

  const { status } = await put(service, 'a', 'content', { [field]: value })

  expect(status).toBe(201)
})

test.each([
  ['Content-Digest', `sha-256=:${sha256('other')}:`],
  ['Repr-Digest', `sha-256=:${sha256('other')}:`],
  ['Content-Digest', `sha-256=:${sha256('content')}:, sha-256=:${sha256('other')}:`],
  ['Content-Digest', 'sha-256=:AAAA:'],
  ['Content-Digest', `sha-256=:${sha256('other')}:;x=1`],
  ['Content-Digest', `sha-256=:${sha256('content')}: x`],
  ['Content-Digest', `sha-256=${sha256('content')}`],
  ['Repr-Digest', 'nonsense'],
])('a PUT with another or a malformed %s changes nothing: %s', async (field, value) => {
  await using service = await emptyService()
  await put(service, 'a', 'before')
  const before = await service.storedContents()

  const { status, body } = await put(service, 'a', 'content', { [field]: value })

  expect([status, body.code]).toEqual([400, 'digest_mismatch'])
  const served = await service.call('GET', '/static/a')
  expect(served.bytes.toString()).toBe('before')
  await expect.poll(() => service.storedContents()).toEqual(before)
})

test.each(['/api/files/a', '/api/trees/a/'])('a PUT of %s is checked by the digest in its trailer', async (path) => {
  await using service = await emptyService()
  const body = path.endsWith('a') ? Buffer.from('content') : await makeTar([['b', 'content']])
  const authorization = `Bearer ${await service.tokenOf('editor')}`
  const sendWith = async (value: string) => {
    const headers = { authorization, trailer: 'Content-Digest', 'transfer-encoding': 'chunked' }
    const sent = request({ port: service.port, method: 'PUT', path, headers })
    sent.addTrailers({ 'Content-Digest': value })
    sent.end(body)
    const [response] = await once(sent, 'response')
    return [response.statusCode, JSON.parse(await text(response)).code]
  }

  for (const value of [`sha-256=:${sha256('other')}:`, 'nonsense'])
    expect(await sendWith(value)).toEqual([400, 'digest_mismatch'])
  await expect.poll(() => service.storedContents()).toEqual([])
  const right = createHash('sha256').update(body).digest('base64')
  expect((await sendWith(`sha-256=:${right}:`))[0]).toBeLessThan(300)
})

test('a file is replaced only if it was not stored after a date', async () => {
  await using service = await emptyService()
  const { body } = await put(service, 'a', '1')
  const stored = Date.parse(String(body.updated_at))
  const before = { 'if-unmodified-since': new Date(stored - 1000).toUTCString() }
  const { headers } = await service.call('GET', '/api/files/a')

  const answers = [
    await put(service, 'a', '2', before),
    await service.put('a', '2', { headers: before }),
    await put(service, 'new', '2', before),
    await put(service, 'a', '2', { 'if-unmodified-since': 'yesterday' }),
    await put(service, 'a', '3', { ...before, 'if-match': String(headers.etag) }),
  ]

  expect(answers.map((answer) => answer.body.code ?? answer.status)).toEqual([
    'precondition_failed',
    'precondition_failed',
    201,
    200,
    'precondition_failed',
  ])
})

// A date has no fraction of its second.
test('a file is replaced or deleted if it was not stored after the second of its own date', async () => {
  await using service = await emptyService()
  const since = async () => {
    const { body } = await put(service, 'a', 'stored')
    return { 'if-unmodified-since': new Date(String(body.updated_at)).toUTCString() }
  }

  const answers = [
    await put(service, 'a', '1', await since()),
    await service.put('a', '2', { headers: await since() }),
    await service.call('DELETE', '/api/files/a', { headers: await since() }),
  ]

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 204])
})

test('If-Unmodified-Since is ignored beside If-Match', async () => {
  await using service = await emptyService()
  const { body } = await put(service, 'a', '1')
  const { headers } = await service.call('GET', '/api/files/a')
  const before = new Date(Date.parse(String(body.updated_at)) - 1000).toUTCString()

  const answer = await put(service, 'a', '2', {
    'if-unmodified-since': before,
    'if-match': String(headers.etag),
  })

  expect(answer.status).toBe(200)
})

test('a PUT is stored only under its preconditions', async () => {
  await using service = await emptyService()
  const { headers: none } = await put(service, 'a', '1', { 'if-none-match': '*' })
  const { headers } = await service.call('GET', '/api/files/a')

  const answers = [
    await put(service, 'a', '2', { 'if-none-match': '*' }),
    await put(service, 'a', '2', { 'if-match': '"other"' }),
    await put(service, 'b', '2', { 'if-match': '*' }),
    await put(service, 'a', '2', { 'if-match': String(headers.etag) }),
  ]

  expect(none.location).toBe('/api/files/a')
  expect(answers.map(({ status, body }) => body.code ?? status)).toEqual([
    'precondition_failed',
    'precondition_failed',
    'precondition_failed',
    200,
  ])
})

test.each([
  ['a reserved path', 'upload/x', {}, 400, 'reserved_path'],
  ['a trailing slash', 'a/', {}, 400, 'invalid_path'],
  ['a directory', 'd', {}, 409, 'path_conflict'],
  ['a path below a file', 'd/f/x', {}, 409, 'path_conflict'],
  ['a path far below a file', 'd/f/x/y/z', {}, 409, 'path_conflict'],
  ['a part of a file', 'a', { 'content-range': 'bytes 0-1/9' }, 400, 'malformed_request'],
  ['a content coding', 'a', { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
  ['too many bytes', 'a', { 'content-length': '101' }, 413, 'file_too_large'],
  ['far too many bytes', 'a', { 'content-length': '999999999999' }, 413, 'file_too_large'],
  ['a wrong precondition', 'd/f', { 'if-none-match': '*' }, 412, 'precondition_failed'],
  ['a malformed digest', 'a', { 'content-digest': '?' }, 400, 'digest_mismatch'],
])('a PUT of %s is refused before its body is sent', async (_what, path, headers, status, code) => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '100' })
  await put(service, 'd/f', 'x')

  const answer = await answerWithoutBody(service, path, { 'content-length': '50', ...headers })

  expect(answer).toContain(`HTTP/1.1 ${status} `)
  expect(answer).toContain(`"code":"${code}"`)
})

test('a chunked PUT is refused as soon as it passes the limit', async () => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '100' })

  const answer = await answerWithoutBody(
    service,
    'a',
    { 'transfer-encoding': 'chunked' },
    `65\r\n${'x'.repeat(101)}\r\n`,
  )

  expect(answer).toContain('"code":"file_too_large"')
  await expect.poll(() => service.storedContents()).toEqual([])
})

test('a PUT that the quota has no room for is refused before its body, unless it may fit', async () => {
  await using service = await emptyService({ QUOTA_BYTES: '1000' })
  await put(service, 'a', 'a'.repeat(600))
  const ask = (path: string, length: number) => answerWithoutBody(service, path, { 'content-length': String(length) })

  const refused = [await ask('b', 401), await ask('a', 1001), await ask('c', 5000)]
  const replaced = await put(service, 'a', 'b'.repeat(1000))
  const duplicate = await put(service, 'b', 'b'.repeat(1000))
  const other = await put(service, 'c', 'c'.repeat(1000))

  for (const answer of refused) expect(answer).toContain('"code":"quota_exceeded"')
  expect([replaced.status, duplicate.status]).toEqual([200, 201])
  expect(other.body.code).toBe('quota_exceeded')
})

test('over a quota that was lowered, a file may be replaced by a smaller one, but by no larger one', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-quota-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const before = await start({ dataDir })
  for (const path of ['a', 'b']) await put(before, path, path.repeat(3000))
  await before.close()
  await using service = await start({ dataDir, env: { QUOTA_BYTES: '2000' } })

  const answers = [
    await put(service, 'a', 'x'.repeat(2999)),
    await service.put('b', 'y'.repeat(2999)),
    await put(service, 'a', 'z'.repeat(3000), { 'transfer-encoding': 'chunked' }),
    await put(service, 'a', 'z'.repeat(3000)),
    await service.put('c', 'new'),
    await put(service, 'a', ''),
  ]

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 507, 507, 507, 200])
})

test('a chunked PUT of a content that is stored needs no room in the quota', async () => {
  await using service = await emptyService({ QUOTA_BYTES: '4000000' })
  const content = 'a'.repeat(3_000_000)
  await put(service, 'a', content)

  const { status } = await put(service, 'b', content, { 'transfer-encoding': 'chunked' })

  expect(status).toBe(201)
})

test('a chunked PUT is refused while it arrives when the quota has no room', async () => {
  await using service = await emptyService({ QUOTA_BYTES: '4000000' })
  await put(service, 'a', 'a'.repeat(2_000_000))

  const answer = await answerWithoutBody(
    service,
    'b',
    { 'transfer-encoding': 'chunked' },
    `2dc6c0\r\n${'x'.repeat(3_000_000)}\r\n`,
  )

  expect(answer).toContain('"code":"quota_exceeded"')
})

test('a client that goes on sending reads the refusal, and its connection stays usable', async () => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '1000' })
  const socket = connect(service.port, '127.0.0.1')
  let received = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    received += chunk
  })
  const authorization = `Bearer ${await service.tokenOf('admin')}`
  const length = 30_000_000

  socket.write(
    `PUT /api/files/a HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-length: ${length}\r\n\r\n`,
  )
  await expect.poll(() => received).toContain('"code":"file_too_large"')
  for (let sent = 0; sent < length; sent += 1_000_000) {
    if (!socket.write('x'.repeat(1_000_000))) await once(socket, 'drain')
  }
  socket.write('GET /health HTTP/1.1\r\nhost: x\r\n\r\n')

  await expect.poll(() => received).toContain('"status":"ok"')
  socket.destroy()
})

test('a PUT that breaks off leaves nothing behind', async () => {
  await using service = await emptyService()
  const socket = connect(service.port, '127.0.0.1')
  const authorization = `Bearer ${await service.tokenOf('admin')}`

  socket.write(
    `PUT /api/files/a HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-length: 999999\r\n\r\n${'x'.repeat(500_000)}`,
  )
  await expect.poll(() => service.storedContents()).toHaveLength(1)
  socket.destroy()

  await expect.poll(() => service.storedContents()).toEqual([])
  expect((await service.call('GET', '/api/files/a')).status).toBe(404)
})

test('only editors can PUT', async () => {
  await using service = await emptyService()

  const viewer = await service.call('PUT', '/api/files/a', { body: 'x', user: 'viewer' })
  const nobody = await service.call('PUT', '/api/files/a', { body: 'x', user: 'nobody' })

  expect([viewer.status, nobody.status]).toEqual([403, 401])
})

/** The response to a PUT whose body is never sent, or only this much of it. */
async function answerWithoutBody(
  service: Service,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<string> {
  const fields = { authorization: `Bearer ${await service.tokenOf('admin')}`, ...headers }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect(service.port, '127.0.0.1')
  socket.write(`PUT /api/files/${path} HTTP/1.1\r\nhost: x\r\n${lines.join('')}\r\n${body}`)
  let received = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    received += chunk
  })
  await expect.poll(() => received).toContain('"request_id"')
  socket.destroy()
  return received
}
