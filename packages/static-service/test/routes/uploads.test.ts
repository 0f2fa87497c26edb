import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { emptyService } from '../support/empty-service.ts'
import { boundary, filesBelow, type Part, writeForm } from '../support/start.ts'

const file = (content: string | Buffer, filename: string | undefined = 'a.txt'): Part => ({
  name: 'file',
  content,
  filename,
})
const files = (content: string, filename: string): Part => ({ name: 'files', content, filename })
const path = (content: string): Part => ({ name: 'path', content })

test('a file that was uploaded can be described and downloaded', async () => {
  await using service = await emptyService()
  const bytes = Buffer.from([0, 1, 2, 255, 254, 13, 10, 45, 45])

  const stored = await service.send('upload', [file(bytes), path('img/жук é.png')])

  expect(stored.status).toBe(201)
  expect(stored.headers.location).toBe('/api/files/img/%D0%B6%D1%83%D0%BA%20%C3%A9.png')
  expect(stored.body).toEqual({
    path: 'img/жук é.png',
    name: 'жук é.png',
    public: true,
    category: 'image',
    content_type: 'image/png',
    size: 9,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    url: '/static/img/%D0%B6%D1%83%D0%BA%20%C3%A9.png',
    uploaded_by: 'admin',
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    updated_at: stored.body.created_at,
  })
  const described = await service.call('GET', String(stored.headers.location))
  expect(described.body).toEqual(stored.body)
  const served = await service.call('GET', String(stored.body.url), { user: 'nobody' })
  expect(served.bytes).toEqual(bytes)
})

test('the ETag of an upload is that of the record, and a condition of the next upload', async () => {
  await using service = await emptyService()
  const upload = (content: string, headers: Record<string, string> = {}) =>
    service.send('upload', [file(content)], { headers })

  const first = await upload('1')
  const described = await service.call('GET', '/api/files/a.txt')
  const second = await upload('2', { 'if-match': String(first.headers.etag) })
  const late = await upload('3', { 'if-match': String(first.headers.etag) })

  expect(first.headers.etag).toBe(described.headers.etag)
  expect([second.status, late.status]).toEqual([200, 412])
  expect(second.headers.etag).not.toBe(first.headers.etag)
})

test('the URL of a file is absolute when the service knows its own', async () => {
  await using service = await emptyService({ PUBLIC_BASE_URL: 'https://cdn.example.com/x/' })

  const { body } = await service.put('a b.txt')

  expect(body.url).toBe('https://cdn.example.com/x/static/a%20b.txt')
})

test.each([
  ['no path: the file name', [file('x', 'a.txt')], 'a.txt'],
  ['no path: the relative directories of the file name', [file('x', 'd/e/a.txt')], 'd/e/a.txt'],
  ['a directory: the file name below it', [path('docs/'), file('x', 'a.txt')], 'docs/a.txt'],
  ['a directory after the file', [file('x', 'a.txt'), path('/docs/')], 'docs/a.txt'],
  ['the root directory', [path('/'), file('x', 'a.txt')], 'a.txt'],
  ['a whole path', [path('docs/b.md'), file('x', 'a.txt')], 'docs/b.md'],
  ['a whole path with a leading slash', [path('/docs/b.md'), file('x')], 'docs/b.md'],
  ['a path that looks encoded, as it is', [path('a%2fb'), file('x')], 'a%2fb'],
  ['a path in another normal form, in NFC', [path('e\u0301'), file('x')], '\u00e9'],
  ['an empty path: as if there were none', [file('x', 'd/a.txt'), path('')], 'd/a.txt'],
  ['a file without a name under a whole path', [path('b'), file('x', '')], 'b'],
])('a single upload goes where it says: %s', async (_what, parts, expected) => {
  await using service = await emptyService()

  const answer = await service.send('upload', parts)

  expect([answer.status, answer.body.path]).toEqual([201, expected])
})

test('an empty file is a file', async () => {
  await using service = await emptyService()

  const { status, body } = await service.send('upload', [file('', 'empty.txt')])

  expect([status, body.size]).toEqual([201, 0])
})

test('replacing a file keeps when it was made and drops the bytes that nothing refers to', async () => {
  await using service = await emptyService()
  const before = await service.put('a.txt', 'before')
  await service.put('same.txt', 'after')

  const after = await service.put('a.txt', 'after', { user: 'editor' })

  expect(after.status).toBe(200)
  expect(after.body).toMatchObject({
    size: 5,
    uploaded_by: 'editor',
    created_at: before.body.created_at,
  })
  const served = await service.call('GET', '/static/a.txt')
  expect(served.bytes.toString()).toBe('after')
  await expect.poll(() => service.storedContents()).toHaveLength(1)
})

test('a batch is answered in the order it was sent, each file at its relative directory', async () => {
  await using service = await emptyService()
  const parts = [files('1', 'z/b.txt'), path('/up/load/'), files('2', 'a.txt'), files('3', 'z/a.txt')]

  const { status, body } = await service.send('upload/batch', parts)

  expect(status).toBe(201)
  expect(body.files?.map((each) => each.path)).toEqual(['up/load/z/b.txt', 'up/load/a.txt', 'up/load/z/a.txt'])
})

test('a batch may go to the root and replace files', async () => {
  await using service = await emptyService()
  await service.put('a.txt', 'old')

  const { status, body } = await service.send('upload/batch', [files('new', 'a.txt'), path('')])

  expect([status, body.files?.map((each) => each.size)]).toEqual([201, [3]])
})

test.each([
  ['an invalid name', [files('1', 'ok.txt'), files('2', '../up.txt')], 400, 'invalid_path'],
  ['two of one path', [files('1', 'd/a'), files('2', 'e'), files('3', 'd/a')], 400, 'duplicate_path'],
  ['two of one path in different normal forms', [files('1', 'e\u0301'), files('2', '\u00e9')], 400, 'duplicate_path'],
  [
    'two of one path, before the second is read',
    [path('d'), files('1', 'a'), files('x'.repeat(101), 'a')],
    400,
    'duplicate_path',
  ],
  ['a file where a directory would be', [files('1', 'a'), files('2', 'a/b')], 409, 'path_conflict'],
  ['a directory where a file is', [files('1', 'new'), files('2', 'taken/x')], 409, 'path_conflict'],
  ['too many files', [1, 2, 3, 4].map((at) => files('x', `f${at}`)), 413, 'too_many_files'],
  ['a file that is too large', [files('1', 'a'), files('x'.repeat(101), 'b')], 413, 'file_too_large'],
  ['none at all', [path('d')], 400, 'file_missing'],
  ['a reserved directory', [path('tree'), files('1', 'a')], 400, 'reserved_path'],
  ['an unknown field', [files('1', 'a'), { name: 'x', content: '' }], 400, 'validation_failed'],
])('a batch with %s changes nothing', async (_what, parts, status, code) => {
  await using service = await emptyService({ MAX_BATCH_FILES: '3', MAX_UPLOAD_BYTES: '100' })
  await service.put('taken', 'as it was')
  const before = await service.storedContents()

  const answer = await service.send('upload/batch', parts)

  expect([answer.status, answer.body.code]).toEqual([status, code])
  const list = await service.call('GET', '/api/files')
  expect(list.body.files?.map((each) => each.path)).toEqual(['taken'])
  await expect.poll(() => service.storedContents()).toEqual(before)
})

test.each([
  ['no file', [path('a')], 400, 'file_missing'],
  ['a file in another part', [{ ...file('x'), name: 'upload' }], 400, 'file_missing'],
  ['no file chosen in a browser', [path('a'), file('', '')], 400, 'file_missing'],
  ['two files', [file('x'), file('y')], 413, 'too_many_files'],
  ['two paths', [path('a'), file('x'), path('b')], 400, 'validation_failed'],
  ['two paths, one empty', [path(''), file('x'), path('b')], 400, 'validation_failed'],
  ['an unknown field', [file('x'), { name: 'paht', content: 'a' }], 400, 'validation_failed'],
  ['an unknown file', [file('x'), { ...file('x'), name: 'other' }], 400, 'validation_failed'],
  [
    'a field named after the prototype',
    [file('x'), path('a'), { name: '__proto__', content: '' }],
    400,
    'malformed_body',
  ],
  ['a path of 10,000 characters', [file('x'), path('a'.repeat(10_000))], 400, 'invalid_path'],
  ['one byte too many', [file('x'.repeat(101))], 413, 'file_too_large'],
  ['a hundred fields', [file('x'), ...Array(100).fill(path('a'))], 413, 'too_many_files'],
])('an upload with %s is refused', async (_what, parts, status, code) => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '100' })

  const answer = await service.send('upload', parts)

  expect([answer.status, answer.body.code]).toEqual([status, code])
  await expect.poll(() => service.storedContents()).toEqual([])
})

test('the limit of parts is named', async () => {
  await using service = await emptyService({ MAX_BATCH_FILES: '2' })

  const one = await service.send('upload', [file('x'), file('y')])
  const two = await service.send(
    'upload/batch',
    [1, 2, 3].map((at) => files('x', `f${at}`)),
  )

  expect([one.body.detail, two.body.detail]).toEqual([
    'Too many parts: at most one path and one file',
    'Too many parts: at most one path and 2 files',
  ])
})

test('a file of exactly the limit is stored', async () => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '100' })

  const { status } = await service.send('upload', [file('x'.repeat(100))])

  expect(status).toBe(201)
})

test('every fault of a form is named', async () => {
  await using service = await emptyService()

  const { body } = await service.send('upload', [
    { name: 'a/b', content: '' },
    file('x'),
    { ...file('x'), name: 'path' },
    { name: 'z', content: '' },
  ])

  expect(body.errors).toEqual([
    { path: '/a~1b', message: 'is not known here' },
    { path: '/path', message: 'must be sent once, without a file name' },
    { path: '/z', message: 'is not known here' },
  ])
})

test.each([
  ['JSON', 'application/json', '{}', 415, 'unsupported_media_type'],
  ['text', 'text/plain', 'x', 415, 'unsupported_media_type'],
  ['another multipart', 'multipart/mixed; boundary=x', '--x--', 415, 'unsupported_media_type'],
  ['no boundary', 'multipart/form-data', 'x', 400, 'malformed_body'],
  ['no form in it', 'multipart/form-data; boundary=x', 'hello', 400, 'malformed_body'],
  ['an end in the middle of a header', 'multipart/form-data; boundary=x', '--x\r\ncontent-disp', 400, 'malformed_body'],
  ['nothing in it', 'multipart/form-data; boundary=x', '', 400, 'file_missing'],
])('a body that is %s is refused', async (_what, type, body, status, code) => {
  await using service = await emptyService()

  const headers = { 'content-type': type }
  const answer = await service.call('POST', '/api/files/upload', { body, headers })

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test.each(['upload', 'upload/batch'])(
  'a part that is encoded for mail is refused by %s, and nothing is stored',
  async (to) => {
    await using service = await emptyService()
    const name = to === 'upload' ? 'file' : 'files'
    const sendAs = (encoding: string) => {
      const form = writeForm([path('a/'), { ...file('eA==', 'a.txt'), name }]).toString()
      const body = form.replace(/(filename=.*\r\n)/, `$1Content-Transfer-Encoding: ${encoding}\r\n`)
      const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
      return service.call('POST', `/api/files/${to}`, { body, headers })
    }

    for (const encoding of ['base64', 'Quoted-Printable', 'x-unknown']) {
      const { status, body } = await sendAs(encoding)
      expect([status, body.code, body.errors?.map((fault) => fault.path)]).toEqual([
        400,
        'validation_failed',
        [`/${name}`],
      ])
    }
    await expect.poll(() => service.storedContents()).toEqual([])
    for (const encoding of ['7bit', '8bit', 'BINARY']) expect((await sendAs(encoding)).status).toBeLessThan(300)
  },
)

test('a form with a content coding is refused, and nothing is stored', async () => {
  await using service = await emptyService()
  const body = gzipSync(writeForm([path('a.txt'), file('content', 'a.txt')]))
  const headers = {
    'content-type': `multipart/form-data; boundary=${boundary}`,
    'content-encoding': 'gzip',
  }

  const answer = await service.call('POST', '/api/files/upload', { body, headers })

  expect([answer.status, answer.body.code]).toEqual([415, 'unsupported_media_type'])
  await expect.poll(() => service.storedContents()).toEqual([])
})

test.each([
  ['say %22hi%22.txt', 'say "hi".txt'],
  ['100%25.txt', '100%25.txt'],
  ['%2e%2e.txt', '%2e%2e.txt'],
])('the file name %s of a form is that of %s', async (filename, path) => {
  await using service = await emptyService()

  const answer = await service.send('upload', [file('x', filename)])

  expect([answer.status, answer.body.path]).toEqual([201, path])
})

test.each(['%0D', '%0A'])('a file name with the end of a line is refused: %s', async (end) => {
  await using service = await emptyService()

  const answer = await service.send('upload', [file('x', `a${end}b.txt`)])

  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_path'])
})

test('a form that is cut off anywhere stores nothing', async () => {
  await using service = await emptyService()
  const whole = writeForm([path('a.txt'), file('content of the file', 'a.txt')])
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  // Up to the closing delimiter: what follows it is not part of the form.
  const cuts = Array.from({ length: whole.length - 4 }, (_, at) => at).filter((at) => at > 0)

  const answers = await Promise.all(
    cuts.map((at) => service.call('POST', '/api/files/upload', { body: whole.subarray(0, at), headers })),
  )

  expect(new Set(answers.map(({ status, body }) => `${status} ${body.code}`))).toEqual(new Set(['400 malformed_body']))
  await expect.poll(() => service.storedContents()).toEqual([])
  const { body } = await service.call('GET', '/api/files')
  expect(body.files).toEqual([])
})

test.each([250, 70_000, 200_000, 300_150])('a caller who hangs up after %i bytes leaves nothing behind', async (at) => {
  await using service = await emptyService()
  const whole = writeForm([file('x'.repeat(300_000)), path('a')]).toString()
  const socket = await service.begin(whole.slice(0, at), whole.length)
  // The first bytes stay in memory.
  if (at > 32_768) await expect.poll(() => filesBelow(`${service.dataDir}/tmp`)).toHaveLength(1)

  socket.destroy()

  await expect.poll(() => service.storedContents()).toEqual([])
  const { body } = await service.call('GET', '/api/files')
  expect(body.files).toEqual([])
})

test('while an upload is running nothing of it can be seen', async () => {
  await using service = await emptyService()
  await service.put('a', 'before')
  const whole = writeForm([file('after '.repeat(50_000)), path('a')]).toString()

  const socket = await service.begin(whole.slice(0, 200_000), whole.length)
  await expect.poll(() => filesBelow(`${service.dataDir}/tmp`)).toHaveLength(1)

  const { bytes } = await service.call('GET', '/static/a')
  expect(bytes.toString()).toBe('before')
  socket.destroy()
})

test('a sender of too much is told so after having sent it all', async () => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '1000' })

  const { status, body } = await service.send('upload', [file(Buffer.alloc(20_000_000))])

  expect([status, body.code]).toEqual([413, 'file_too_large'])
  await expect.poll(() => service.storedContents()).toEqual([])
})

test('a form that its length proves to be too large is refused before it is sent', async () => {
  await using service = await emptyService({ MAX_UPLOAD_BYTES: '1000' })
  const socket = await service.begin('', 20_000_000)

  const [answer] = await once(socket, 'data')

  expect(String(answer)).toMatch(/^HTTP\/1\.1 413 .*file_too_large/s)
  socket.destroy()
})

test('a form is refused while its file arrives when the quota has no room', async () => {
  await using service = await emptyService({ QUOTA_BYTES: '4000000' })
  await service.put('a', 'a'.repeat(2_000_000))
  const whole = writeForm([path('b'), file('x'.repeat(4_000_000))]).toString()
  const socket = await service.begin(whole.slice(0, 3_500_000), whole.length)

  const [answer] = await once(socket, 'data')

  expect(String(answer)).toContain('"code":"quota_exceeded"')
  socket.destroy()
})

test('a form is refused while a file arrives that is larger than the quota, though its path is not yet known', async () => {
  await using service = await emptyService({ QUOTA_BYTES: '1000' })
  const whole = writeForm([file('x'.repeat(3000)), path('b')]).toString()
  const socket = await service.begin(whole.slice(0, 2500), whole.length)

  const [answer] = await once(socket, 'data')

  expect(String(answer)).toContain('"code":"quota_exceeded"')
  socket.destroy()
})

test('a form with an unknown part is refused before all of a large file has arrived', async () => {
  await using service = await emptyService()
  const parts = [{ name: 'paht', content: 'a' }, file('x'.repeat(2_000_000))]
  const whole = writeForm(parts).toString()
  const socket = await service.begin(whole.slice(0, 1_500_000), whole.length)

  const [answer] = await once(socket, 'data')

  expect(String(answer)).toMatch(/^HTTP\/1\.1 400 .*\/paht/s)
  socket.destroy()
})

test.each([
  ['a', 'if-none-match: *\r\n', 'precondition_failed'],
  ['a', 'if-match: "other"\r\n', 'precondition_failed'],
  ['a/b', '', 'path_conflict'],
])('a form to %s with %j is refused before its file is sent: %s', async (to, fields, code) => {
  await using service = await emptyService()
  await service.put('a', 'as it was')
  const whole = writeForm([path(to), file('x'.repeat(100_000))]).toString()
  const socket = await service.begin(whole.slice(0, 1000), whole.length, fields)

  const [answer] = await once(socket, 'data')

  expect(String(answer)).toContain(`"code":"${code}"`)
  socket.destroy()
})

test.each([
  ['the root of a directory', 'a/b', 'a'],
  ['a file as a directory', 'a', 'a/b'],
  ['a file as a directory further up', 'a', 'a/b/c/d'],
])('a path cannot be both a file and a directory: %s', async (_what, first, second) => {
  await using service = await emptyService()
  await service.put(first)

  const { status, body } = await service.put(second)

  expect([status, body.code]).toEqual([409, 'path_conflict'])
  expect(body.detail).toContain(`Cannot store ${second}: it is a directory, or below a file`)
})

test('a quota bounds the distinct contents, and what was deleted makes room again', async () => {
  await using service = await emptyService({ QUOTA_BYTES: '1000' })
  await service.put('a', 'a'.repeat(600))
  await service.put('same as a', 'a'.repeat(600))

  const tooMuch = await service.put('b', 'b'.repeat(600))
  const farTooMuch = await service.put('b', 'b'.repeat(6000))
  const replaced = await service.put('same as a', 'c'.repeat(400))
  await service.call('DELETE', '/api/files/a')
  const fits = await service.put('b', 'b'.repeat(600))

  expect([tooMuch.status, tooMuch.body.code]).toEqual([507, 'quota_exceeded'])
  expect([farTooMuch.status, farTooMuch.body.code]).toEqual([507, 'quota_exceeded'])
  expect([replaced.status, fits.status]).toEqual([200, 201])
  await expect.poll(() => service.storedContents()).toHaveLength(2)
})

test('only one of many who ask for a new file makes it', async () => {
  await using service = await emptyService()
  const headers = { 'if-none-match': '*' }

  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, at) => service.put('a', `content ${at}`, { headers })),
  )

  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(412)])
  const { body } = answers.find(({ status }) => status === 412) ?? {}
  expect(body?.code).toBe('precondition_failed')
  expect(body?.detail).toBe('File exists at a: choose another path, or replace it')
  await expect.poll(() => service.storedContents()).toHaveLength(1)
})

test.each([{ parts: [path('d')] }, { parts: [] }])(
  'a batch of new files is refused where some exist, and names all of them: $parts',
  async ({ parts }) => {
    await using service = await emptyService()
    for (const name of ['b', 'c']) await service.put(parts.length > 0 ? `d/${name}` : name, 'as it was')
    const sent = ['a', 'b', 'c'].map((name) => files('new', name))

    const { status, body } = await service.send('upload/batch', [...parts, ...sent], {
      headers: { 'if-none-match': '*' },
    })

    const list = await service.call('GET', '/api/files')
    const paths = list.body.files?.map((each) => each.path)
    expect([status, body.code, body.paths]).toEqual([412, 'precondition_failed', paths])
    expect(list.body.files?.map(({ size }) => size)).toEqual([9, 9])
  },
)

test('a file is replaced only if it is still the one that was seen, by either of its tags', async () => {
  await using service = await emptyService()
  await service.put('a', '1')
  const record = await service.call('GET', '/api/files/a')
  const content = await service.call('GET', '/static/a')
  const put = (tag: unknown, body: string) => service.put('a', body, { headers: { 'if-match': String(tag) } })

  const answers = [
    await put('"other", W/"x"', '0'),
    await put(`"other", ${record.headers.etag}`, '2'),
    await put(record.headers.etag, '3'),
    await put(content.headers.etag, '3'),
    await put('*', '1'),
    await put(content.headers.etag, '4'),
  ]

  expect(answers.map(({ status }) => status)).toEqual([412, 200, 412, 412, 200, 200])
  const missing = await service.put('b', 'x', { headers: { 'if-match': '*' } })
  expect(missing.status).toBe(412)
})

test('who may only look cannot upload', async () => {
  await using service = await emptyService()

  const viewer = await service.put('a', 'x', { user: 'viewer' })
  const nobody = await service.put('a', 'x', { user: 'nobody' })

  expect([viewer.status, nobody.status]).toEqual([403, 401])
})

test.each([
  ['a name without extension by its first bytes', 'logo', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'image/png'],
  ['a name with an unknown extension', 'a.xyzzy', 'text', 'application/octet-stream'],
  ['a name that is like an extension', 'html', 'text', 'text/plain'],
  ['an extension in capitals', 'A.HTML', 'text', 'text/html'],
  ['an extension before what the bytes say', 'a.txt', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'text/plain'],
])('the content type comes from the file, never from the client: %s', async (...row) => {
  const [, name, content, type] = row
  await using service = await emptyService()
  const part = { ...file(Buffer.from(content, 'latin1'), name), type: 'text/javascript' }

  const { body } = await service.send('upload', [part])

  expect(body.content_type).toBe(type)
})
