import { createHash, hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { emptyService } from '../../support/empty-service.ts'
import type { Call, Service } from '../../support/start.ts'
import { beginPatch, metadataOf, offsetOf, offsetStream, tus, urlOf } from '../../support/tus.ts'

const mebibyte = 1_048_576

const digest = (algorithm: string, content: string | Buffer) => createHash(algorithm).update(content).digest('base64')

async function served(service: Service, path: string) {
  const { bytes } = await service.call('GET', `/static/${path}`)
  return bytes
}

test.each(['', 'https://app.example.com'])(
  'OPTIONS tells what is supported, to anyone, with CORS_ORIGIN=%s',
  async (origins) => {
    await using service = await emptyService({ MAX_UPLOAD_BYTES: '1234', CORS_ORIGIN: origins })

    const { status, headers } = await service.call('OPTIONS', '/api/uploads/', { user: 'nobody' })

    expect(status).toBe(204)
    expect(headers).toMatchObject({
      'tus-resumable': '1.0.0',
      'tus-version': '1.0.0',
      'tus-max-size': '1234',
      'tus-extension': 'creation,creation-with-upload,creation-defer-length,expiration,termination,checksum',
      'tus-checksum-algorithm': 'sha1,sha256',
    })
  },
)

test('a page of another origin may use the protocol', async () => {
  await using service = await emptyService({ CORS_ORIGIN: 'https://app.example.com' })
  const origin = { origin: 'https://app.example.com' }

  const preflight = await service.call('OPTIONS', '/api/uploads/', {
    user: 'nobody',
    headers: {
      ...origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'tus-resumable,upload-offset,x-http-method-override',
    },
  })
  const { headers } = await tus(service).create('a', 1, { headers: origin })

  expect(preflight.headers['access-control-allow-methods']).toContain('PATCH')
  expect(preflight.headers['access-control-allow-headers']).toContain('upload-offset')
  const exposed = String(headers['access-control-expose-headers'])
  for (const name of ['location', 'upload-offset', 'upload-length', 'tus-resumable', 'repr-digest'])
    expect(exposed).toContain(name)
})

test('an upload in several requests becomes a file with the last one', async () => {
  await using service = await emptyService()
  const { create, patch, head } = tus(service)
  const metadata = { path: 'a/ж.txt', name: 'x', type: 'text/html', relativePath: '.' }

  const created = await create(metadata, 11)
  const first = await patch(urlOf(created), 0, 'Hello, ')
  const between = await head(urlOf(created))
  const missing = await service.call('GET', '/api/files/a/%D0%B6.txt')
  const last = await patch(urlOf(created), 7, 'tus!')
  const done = await head(urlOf(created))

  expect([created.status, created.headers['upload-offset']]).toEqual([201, '0'])
  expect(urlOf(created)).toMatch(/^\/api\/uploads\/[\w-]+$/)
  expect([first.status, offsetOf(first), offsetOf(between), missing.status]).toEqual([204, 7, 7, 404])
  expect(between.headers).toMatchObject({
    'upload-length': '11',
    'upload-metadata': metadataOf(metadata),
    'cache-control': 'no-store',
    'tus-resumable': '1.0.0',
  })
  expect(Date.parse(String(first.headers['upload-expires']))).toBeGreaterThan(Date.now())
  const told = {
    'content-location': '/api/files/a/%D0%B6.txt',
    'repr-digest': `sha-256=:${digest('sha256', 'Hello, tus!')}:`,
    'upload-offset': '11',
  }
  expect([last.status, last.headers]).toMatchObject([204, told])
  expect(done.headers).toMatchObject({ ...told, etag: String(last.headers.etag) })
  const record = await service.call('GET', '/api/files/a/%D0%B6.txt')
  expect(record.headers.etag).toBe(last.headers.etag)
  expect(record.body).toMatchObject({ size: 11, uploaded_by: 'admin', content_type: 'text/plain' })
  expect((await served(service, 'a/%D0%B6.txt')).toString()).toBe('Hello, tus!')
})

test.each([0, 1, 32_768, 32_769, 3 * mebibyte, 20 * mebibyte + 5])(
  '%i bytes in pieces of any size are the file, and nothing else is left',
  async (size) => {
    await using service = await emptyService()
    const { create, patch } = tus(service)
    const bytes = randomBytes(size)

    const url = urlOf(await create('big.bin', size))
    let offset = 0
    for (const piece of [5, 3 * mebibyte, 9 * mebibyte, size]) {
      if (offset === size) break
      const answer = await patch(url, offset, bytes.subarray(offset, offset + piece))
      offset = offsetOf(answer)
    }

    expect((await served(service, 'big.bin')).equals(bytes)).toBe(true)
    await expect
      .poll(async () => (await service.storedContents()).filter((name) => !/\.(?:br|gzip|zstd)| [123]$/.test(name)))
      .toHaveLength(1)
  },
)

test('the bytes may come with the creation, and the length with a later request', async () => {
  await using service = await emptyService()
  const { create, patch, head } = tus(service)

  const whole = await create('a.txt', 5, { body: 'whole' })
  const part = await create('b.txt', 5, { body: 'pa' })
  const deferred = await create('c.txt')
  await patch(urlOf(deferred), 0, 'defer')
  const open = await head(urlOf(deferred))
  const ended = await patch(urlOf(deferred), 5, 'red', { headers: { 'upload-length': '8' } })
  const changed = await patch(urlOf(part), 2, 'rt', { headers: { 'upload-length': '4' } })

  expect([whole.status, whole.headers['content-location']]).toEqual([201, '/api/files/a.txt'])
  expect([part.status, offsetOf(part)]).toEqual([201, 2])
  expect(open.headers).toMatchObject({ 'upload-defer-length': '1', 'upload-offset': '5' })
  expect(ended.headers['content-location']).toBe('/api/files/c.txt')
  expect((await served(service, 'c.txt')).toString()).toBe('deferred')
  expect([changed.status, changed.body.code]).toEqual([400, 'malformed_request'])
})

test('bytes of a creation that are refused leave no upload', async () => {
  await using service = await emptyService()
  const { create } = tus(service)
  const [user, body] = ['editor', 'abc']
  const wrong = { 'upload-checksum': `sha1 ${digest('sha1', 'x')}` }
  const createTen = () => Promise.all(Array.from({ length: 10 }, () => create('a', 3, { user, body, headers: wrong })))

  const refused = []
  for (let round = 0; round < 10; round += 1) refused.push(...(await createTen()))
  const typed = await create('a', 3, { user, body, headers: { 'content-type': 'text/plain' } })
  const accepted = await create('a', 3, { user, body })

  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([460]))
  expect([typed.status, accepted.status]).toEqual([415, 201])
})

test('the length of an upload is no less than what was sent', async () => {
  await using service = await emptyService()
  const { create, patch } = tus(service)
  const url = urlOf(await create('a'))
  await patch(url, 0, 'abc')

  const less = await patch(url, 3, '', { headers: { 'upload-length': '2' } })
  const done = await patch(url, 3, '', { headers: { 'upload-length': '3' } })

  expect([less.status, less.body.code, done.status]).toEqual([400, 'malformed_request', 204])
})

test('a PATCH that its length proves to be too long is refused before it is sent', async () => {
  await using service = await emptyService()
  const url = urlOf(await tus(service).create('a', 10))
  const socket = await beginPatch(service, url, 11)

  const [answer] = await once(socket, 'data')

  expect(String(answer)).toMatch(/^HTTP\/1\.1 413 .*upload_length_exceeded/s)
  socket.destroy()
})

test('the last PATCH can be repeated, whole or empty, with the same response', async () => {
  await using service = await emptyService()
  const { create, patch } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6))
  await patch(url, 0, 'abc')

  const last = await patch(url, 3, 'def')
  const again = [await patch(url, 3, 'def'), await patch(url, 6, '')]
  const other = await patch(url, 3, 'd')

  for (const { status, headers } of again)
    expect([status, headers['content-location'], headers.etag, headers['repr-digest']]).toEqual([
      204,
      last.headers['content-location'],
      last.headers.etag,
      last.headers['repr-digest'],
    ])
  expect([other.status, other.body.code]).toEqual([409, 'offset_conflict'])
})

test('without a path, the file is named by filename, in the directory of the query', async () => {
  await using service = await emptyService()
  const { send } = tus(service)
  const creation = (values: Record<string, string>) => ({
    headers: { 'upload-metadata': metadataOf(values), 'upload-length': '0' },
  })

  const answers = [
    await send('POST', '/api/uploads/?folder=d/e', creation({ filename: 'a.txt' })),
    await send('POST', '/api/uploads/?folder=d', creation({ filename: 'upload' })),
    await send('POST', '/api/uploads/', creation({ filename: 'b.txt' })),
    await send('POST', '/api/uploads/?folder=d', creation({ filename: 'x', path: '/c.txt' })),
  ]
  const malformed = await send('POST', '/api/uploads/?folder=%ff', creation({ filename: 'a' }))

  expect(answers.map(({ headers }) => headers['content-location'])).toEqual([
    '/api/files/d/e/a.txt',
    '/api/files/d/upload',
    '/api/files/b.txt',
    '/api/files/c.txt',
  ])
  expect([malformed.status, malformed.body.code]).toEqual([400, 'invalid_path'])
})

const length = { 'upload-length': '10' }
const named = { 'upload-metadata': metadataOf({ path: 'a' }) }

test.each<[string, Call['headers'], number, string, string?]>([
  ['no length', named, 400, 'malformed_request'],
  ['two lengths', { ...named, ...length, 'upload-defer-length': '1' }, 400, 'malformed_request'],
  ['a wrong length', { ...named, 'upload-length': '-1' }, 400, 'malformed_request'],
  ['no metadata', length, 400, 'malformed_request'],
  ['no path', { ...length, 'upload-metadata': 'name YQ==' }, 400, 'malformed_request'],
  ['metadata that is not base64', { ...length, 'upload-metadata': 'path ?' }, 400, 'malformed_request'],
  ['a key twice', { ...length, 'upload-metadata': 'path YQ==,path YQ==' }, 400, 'malformed_request'],
  ['a path that is not UTF-8', { ...length, 'upload-metadata': 'path /w==' }, 400, 'malformed_request'],
  [
    'another overwrite',
    { ...length, 'upload-metadata': metadataOf({ path: 'a', overwrite: '1' }) },
    400,
    'malformed_request',
  ],
  ['an invalid path', { ...length, 'upload-metadata': metadataOf({ path: '../a' }) }, 400, 'invalid_path'],
  ['a reserved path', { ...length, 'upload-metadata': metadataOf({ path: 'tree/a' }) }, 400, 'reserved_path'],
  ['concatenation', { ...named, ...length, 'upload-concat': 'partial' }, 400, 'concatenation_not_supported'],
  ['a path below a file', { ...length, 'upload-metadata': metadataOf({ path: 'there/a' }) }, 409, 'path_conflict'],
  [
    'overwrite=false of a file',
    { ...length, 'upload-metadata': metadataOf({ path: 'there', overwrite: 'false' }) },
    412,
    'precondition_failed',
    'File exists at there',
  ],
  [
    'another if_match',
    { ...length, 'upload-metadata': metadataOf({ path: 'there', if_match: '"x"' }) },
    412,
    'precondition_failed',
  ],
  ['another version', { ...named, ...length, 'tus-resumable': '0.2.2' }, 412, 'tus_version_not_supported'],
  ['too many bytes', { ...named, 'upload-length': '1001' }, 413, 'file_too_large'],
  ['a length of 16 digits', { ...named, 'upload-length': '9'.repeat(16) }, 413, 'file_too_large'],
  ['more than the quota', { ...named, 'upload-length': '900' }, 507, 'quota_exceeded'],
  ['more than is left of it', { ...named, 'upload-length': '500' }, 507, 'quota_exceeded'],
])('a creation with %s is refused', async (_what, headers, status, code, detail = '') => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '1000', QUOTA_BYTES: '500' })
  await service.put('there', 'x')

  const answer = await tus(service).send('POST', '/api/uploads/', { headers })

  expect([answer.status, answer.body.code]).toEqual([status, code])
  expect(answer.body.detail).toContain(detail)
  expect(answer.headers['tus-resumable']).toBe('1.0.0')
})

test.each<[string, number, string, Call['headers'], number, string]>([
  ['another type', 0, 'abc', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
  ['a content coding', 0, 'abc', { 'content-encoding': 'gzip' }, 415, 'unsupported_media_type'],
  ['no version', 0, 'abc', { 'tus-resumable': '' }, 412, 'tus_version_not_supported'],
  ['a later offset', 1, 'abc', {}, 409, 'offset_conflict'],
  ['a malformed offset', 0, 'abc', { 'upload-offset': 'x' }, 400, 'malformed_request'],
  ['more bytes than the upload has', 0, 'abcdefghijk', {}, 413, 'upload_length_exceeded'],
  ['more bytes, in chunks', 0, 'abcdefghijk', { 'transfer-encoding': 'chunked' }, 413, 'upload_length_exceeded'],
  ['another sha1', 0, 'abc', { 'upload-checksum': `sha1 ${digest('sha1', 'x')}` }, 460, 'checksum_mismatch'],
  ['another sha256', 0, 'abc', { 'upload-checksum': `sha256 ${digest('sha256', 'x')}` }, 460, 'checksum_mismatch'],
  ['an unknown checksum', 0, 'abc', { 'upload-checksum': 'md5 AAAA' }, 400, 'malformed_request'],
])('a PATCH with %s changes nothing', async (_what, offset, body, headers, status, code) => {
  await using service = await emptyService()
  const { create, patch, head } = tus(service)
  const url = urlOf(await create('a', 10))

  const answer = await patch(url, offset, body, { headers })
  const known = await head(url)

  expect([answer.status, answer.body.code]).toEqual([status, code])
  expect(offsetOf(known)).toBe(0)
})

test.each([{}, { 'transfer-encoding': 'chunked' }])(
  'after its end, an upload takes no more bytes, with %o',
  async (headers) => {
    await using service = await emptyService()
    const { create, patch, head } = tus(service)
    const url = urlOf(await create('a', 3))
    await patch(url, 0, 'abc')

    const answer = await patch(url, 3, 'more', { headers })

    expect([answer.status, answer.body.code]).toEqual([413, 'upload_length_exceeded'])
    expect(offsetOf(await head(url))).toBe(3)
    expect((await served(service, 'a')).toString()).toBe('abc')
  },
)

test.each(['sha1', 'sha256'])('bytes with their %s are stored', async (algorithm) => {
  await using service = await emptyService()
  const { create, patch } = tus(service)
  const headers = (bytes: string) => ({
    'upload-checksum': `${algorithm} ${digest(algorithm, bytes)}`,
  })
  const url = urlOf(await create('a', 6))

  const refused = await patch(url, 0, 'xyz', { headers: headers('abc') })
  const answers = [
    await patch(url, 0, 'abc', { headers: headers('abc') }),
    await patch(url, 3, 'xyz', { headers: headers('def') }),
    await patch(url, 3, 'def', { headers: headers('def') }),
  ]

  expect([refused, ...answers].map(({ status }) => status)).toEqual([460, 204, 460, 204])
  expect((await served(service, 'a')).toString()).toBe('abcdef')
})

test('an upload belongs to its user', async () => {
  await using service = await emptyService()
  const { create, patch, head, send } = tus(service)
  const url = urlOf(await create('a', 3))
  const user = 'editor'

  const answers = [
    await head(url, { user }),
    await patch(url, 0, 'abc', { user }),
    await send('DELETE', url, { user }),
    await head('/api/uploads/unknown'),
    await head(url, { user: 'viewer' }),
    await create('b', 3, { user: 'viewer' }),
    await create('b', 3, { user: 'nobody' }),
  ]

  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 403, 403, 401])
  expect((await patch(url, 0, 'abc')).status).toBe(204)
})

test('a deleted upload is gone, and the file of a published one stays', async () => {
  await using service = await emptyService()
  const { create, patch, head, send } = tus(service)
  const open = urlOf(await create('a', 6, { body: 'abc' }))
  const published = urlOf(await create('b', 3, { body: 'abc' }))

  const deleted = [await send('DELETE', open), await send('DELETE', published)]
  const after = [await head(open), await patch(open, 3, 'def'), await send('DELETE', published)]

  expect(deleted.map(({ status }) => status)).toEqual([204, 204])
  expect(after.map(({ status }) => status)).toEqual([410, 410, 410])
  expect(after[1]?.body.code).toBe('upload_ended')
  expect((await served(service, 'b')).toString()).toBe('abc')
  await expect.poll(() => service.storedContents()).toHaveLength(1)
})

test('a method may be named by X-HTTP-Method-Override', async () => {
  await using service = await emptyService()
  const { create, send } = tus(service)
  const url = urlOf(await create('a', 3))
  const post = (method: string, headers: Call['headers'] = {}, body = '') =>
    send('POST', url, { body, headers: { 'x-http-method-override': method, ...headers } })

  const patched = await post('PATCH', { 'content-type': offsetStream, 'upload-offset': '0' }, 'ab')
  const known = await post('HEAD')
  const deleted = await post('DELETE')
  const none = await send('POST', url)

  expect([patched.status, offsetOf(known), deleted.status, none.status]).toEqual([204, 2, 204, 405])
})

test.each([
  ['HEAD', {}],
  ['POST', { 'x-http-method-override': 'HEAD' }],
  ['DELETE', {}],
])('%s of an upload refuses unknown query parameters', async (method, headers) => {
  await using service = await emptyService()
  const { create, send } = tus(service)
  const url = urlOf(await create('a', 1))

  const { status } = await send(method, `${url}?colour=red`, { headers })

  expect(status).toBe(400)
})

test('where publishing is refused, the last byte is withheld, and the end can be tried again', async () => {
  await using service = await emptyService()
  const { create, patch, head } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6))
  await patch(url, 0, 'abc')
  await service.put('a', 'other')

  const refused = await patch(url, 3, 'def')
  const known = await head(url)
  const again = await patch(url, 5, 'f')
  const { headers } = await service.call('GET', '/api/files/a')
  const empty = await patch(url, 6, '', { headers: { 'if-match': '"other"' } })
  const done = await patch(url, 5, 'f', { headers: { 'if-match': String(headers.etag) } })

  for (const answer of [refused, again, empty])
    expect([answer.status, answer.body.code]).toEqual([412, 'precondition_failed'])
  expect([offsetOf(known), done.status]).toEqual([5, 204])
  expect((await served(service, 'a')).toString()).toBe('abcdef')
})

test('of a creation with all bytes whose end was refused the end can be tried again', async () => {
  await using service = await emptyService()
  const { create, patch, head } = tus(service)
  const headers = { 'if-match': '"other"' }

  const refused = await create('a', 3, { body: 'abc', headers })
  const done = await patch(urlOf(refused), 2, 'c')
  const empty = await create('b', 0, { headers })
  const known = await head(urlOf(empty))
  const stored = await patch(urlOf(empty), 0, '')

  expect([refused.status, done.status]).toEqual([412, 204])
  // It has no last byte to withhold, so its length is not told.
  expect([empty.status, known.headers['upload-length'], stored.status]).toEqual([412, undefined, 204])
  expect((await served(service, 'a')).toString()).toBe('abc')
})

test('an end that was refused is refused again where its user has stored the same bytes meanwhile', async () => {
  await using service = await emptyService()
  const { create, patch } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6))
  await service.put('a', 'other')

  const refused = await patch(url, 0, 'abcdef')
  await service.put('a', 'abcdef')
  const again = await patch(url, 6, '')
  const changed = await patch(url, 6, '', { headers: { 'if-match': '"other"' } })

  expect([refused, again, changed].map(({ status }) => status)).toEqual([412, 412, 412])
})

test.each<[string, number, string]>([
  ['a directory', 409, 'path_conflict'],
  ['more than the quota', 507, 'quota_exceeded'],
])('an end that meets %s keeps the bytes for another attempt', async (what, status, code) => {
  await using service = await emptyService({ QUOTA_BYTES: '100000' })
  const { create, patch, head } = tus(service)
  const [path, content] = what === 'a directory' ? ['a/b', 'x'] : ['other', 'x'.repeat(60_000)]
  const bytes = randomBytes(50_000)
  const url = urlOf(await create('a', bytes.length))
  await patch(url, 0, bytes.subarray(0, 1000))
  await service.put(path, content)

  const refused = await patch(url, 1000, bytes.subarray(1000))
  const known = await head(url)
  await service.call('DELETE', `/api/files/${path}`)
  const done = await patch(url, bytes.length - 1, bytes.subarray(-1))

  expect([refused.status, refused.body.code]).toEqual([status, code])
  expect([offsetOf(known), done.status]).toEqual([bytes.length - 1, 204])
  expect((await served(service, 'a')).equals(bytes)).toBe(true)
})

test('a user has at most a hundred unfinished uploads', async () => {
  await using service = await emptyService()
  const { create, send } = tus(service)
  const user = 'editor'

  const createAtOnce = (length: number) => Promise.all(Array.from({ length }, () => create('a', 3, { user })))
  const answers = []
  for (const count of [...Array(9).fill(10), 11]) answers.push(...(await createAtOnce(count)))
  const other = await create('a', 3)

  const refused = answers.filter(({ status }) => status !== 201)
  expect(refused.map(({ status, body }) => [status, body.code])).toEqual([[429, 'too_many_uploads']])
  expect(other.status).toBe(201)
  const created = answers.filter(({ status }) => status === 201).map(urlOf)
  await Promise.all(created.map((url) => send('DELETE', url, { user })))
})

test('what arrived of a request that was cut counts, and HEAD answers while another one writes', async () => {
  await using service = await emptyService()
  const { create, patch, head, send } = tus(service)
  const bytes = randomBytes(3 * mebibyte)
  const url = urlOf(await create('a', bytes.length))
  const socket = await beginPatch(service, url, bytes.length)

  socket.write(bytes.subarray(0, mebibyte))
  await expect.poll(() => service.storedContents()).not.toEqual([])
  const [known, second] = [await head(url), await patch(url, 0, bytes)]
  const deleted = await send('DELETE', url)
  socket.destroy()
  await expect.poll(async () => offsetOf(await head(url))).toBe(mebibyte)
  // The bytes count a moment before their writer has left.
  const rest = () => patch(url, mebibyte, bytes.subarray(mebibyte))
  const statuses: unknown[] = []
  await expect.poll(async () => statuses[statuses.push((await rest()).status) - 1]).not.toBe(423)

  expect(offsetOf(known)).toBe(0)
  for (const { status, body } of [second, deleted]) expect([status, body.code]).toEqual([423, 'upload_locked'])
  expect(statuses.at(-1)).toBe(204)
  expect((await served(service, 'a')).equals(bytes)).toBe(true)
})

test('nothing counts of a request with a checksum that was cut', async () => {
  await using service = await emptyService()
  const { create, patch } = tus(service)
  const bytes = randomBytes(3 * mebibyte)
  const url = urlOf(await create('a', bytes.length))
  const checksum = `sha256 ${digest('sha256', bytes)}`
  const socket = await beginPatch(service, url, bytes.length, { 'upload-checksum': checksum })

  socket.write(bytes.subarray(0, 2 * mebibyte))
  await expect.poll(() => service.storedContents()).not.toEqual([])
  socket.destroy()
  const statuses: unknown[] = []
  await expect.poll(async () => statuses[statuses.push((await patch(url, 0, bytes)).status) - 1]).not.toBe(423)

  expect(statuses.at(-1)).toBe(204)
})

test('an upload whose length is not yet known has the size limit of every upload', async () => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '1000' })
  const { create, patch } = tus(service)
  const url = urlOf(await create('a'))
  await patch(url, 0, 'x'.repeat(900))

  const answers = [
    await patch(url, 900, 'x'.repeat(101)),
    await patch(url, 900, 'x'.repeat(101), { headers: { 'transfer-encoding': 'chunked' } }),
    await patch(url, 900, '', { headers: { 'upload-length': '1001' } }),
  ]

  for (const { status, body } of answers) expect([status, body.code]).toEqual([413, 'file_too_large'])
})

test.each(['with its length', 'in chunks'])(
  'of what arrived of a request %s, all but the last 8 MiB is durable while it goes on',
  async (how) => {
    await using service = await emptyService()
    const { create, head } = tus(service)
    const [size, sent] = [40 * mebibyte, 17 * mebibyte]
    const url = urlOf(await create('a', size))
    const isChunked = how === 'in chunks'
    const socket = await beginPatch(service, url, isChunked ? undefined : size)
    const send = (count: number) => {
      if (isChunked) socket.write(`${count.toString(16)}\r\n`)
      socket.write(randomBytes(count))
      if (isChunked) socket.write('\r\n')
    }

    send(sent)
    const readOffset = async () => {
      send(4096) // One that falls silent is cut, and all that arrived of it is durable then.
      return offsetOf(await head(url))
    }
    await expect.poll(readOffset).toBeGreaterThanOrEqual(sent - 8 * mebibyte)
    socket.destroy()
  },
)

test('the digest of an upload is that of its bytes', async () => {
  await using service = await emptyService()
  const { create, patch } = tus(service)
  const bytes = randomBytes(100_000)
  const url = urlOf(await create('a', bytes.length))
  await patch(url, 0, bytes.subarray(0, 33_333))
  await patch(url, 33_333, bytes.subarray(33_333))

  const { body } = await service.call('GET', '/api/files/a')

  expect(body.sha256).toBe(hash('sha256', bytes))
})

test('a token that is limited to folders uploads into them alone', async () => {
  await using service = await emptyService()
  const { create, head } = tus(service)
  const outside = urlOf(await create('b/x', 3))
  const token = await service.call('POST', '/api/tokens', {
    json: { name: outside, role: 'editor', folders: ['a/'] },
  })
  const limited = { headers: { authorization: `Bearer ${token.body.token}` } }

  const answers = [await create('b/y', 3, limited), await create('a/y', 3, limited), await head(outside, limited)]

  expect(answers.map(({ status }) => status)).toEqual([404, 201, 404])
})
