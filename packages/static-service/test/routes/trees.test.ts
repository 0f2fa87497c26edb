import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { ZipFile } from 'yazl'
import { z } from 'zod'
import { startSharedStores } from '../support/shared-stores.ts'
import { type Call, type Service, start } from '../support/start.ts'
import { digestOf } from '../support/stored-contents.ts'
import { type Member, makeTar } from '../support/tar.ts'

let service: Service
beforeAll(async () => {
  service = await start({
    env: {
      MAX_UPLOAD_BYTES: '300000',
      KEEP_HISTORY_DAYS: '30',
      MAX_TREE_FILES: '20',
      MAX_TREE_BYTES: '1000000',
      STATIC_SITES: 'site/',
    },
  })
  return () => service[Symbol.asyncDispose]()
})

const get = (tree: string, headers: Record<string, string> = {}) =>
  service.call('GET', `/api/trees/${tree}`, { headers })

const TreeJson = z.object({ files: z.record(z.string(), z.object({ sha256: z.string() })) })

/** The digests of a tree by name. */
async function namesOf(tree: string): Promise<Record<string, string>> {
  const { status, bytes } = await get(tree, { accept: 'application/json' })
  if (status === 404) return {}
  const { files } = TreeJson.parse(JSON.parse(bytes.toString()))
  return Object.fromEntries(Object.entries(files).map(([name, { sha256 }]) => [name, sha256]))
}

const Result = z.looseObject({
  code: z.string().optional(),
  detail: z.string().optional(),
  missing: z.array(z.string()).optional(),
  change: z.looseObject({ id: z.number(), action: z.string() }).nullish(),
})

async function put(tree: string, body: Buffer | object, { query = '', ...call }: PutCall = {}) {
  const sent = Buffer.isBuffer(body) ? { body } : { json: body }
  const path = `/api/trees/${tree}${query}`
  const { status, headers, bytes } = await service.call('PUT', path, { ...sent, ...call })
  return { status, headers, body: Result.parse(JSON.parse(bytes.toString())) }
}

type PutCall = Omit<Call, 'body' | 'json'> & { query?: string }

const tar = (...members: Member[]) => makeTar(members)

async function zip(...members: [name: string, content: string, mode?: number][]): Promise<Buffer> {
  const file = new ZipFile()
  for (const [name, content, mode] of members) {
    if (name.endsWith('/')) file.addEmptyDirectory(name)
    else file.addBuffer(Buffer.from(content), name, mode ? { mode } : {})
  }
  file.end()
  return buffer(file.outputStream as Readable)
}

/** A frame that declares a window of 2^`windowLog` bytes, with one block of less than 128 KiB as it is (RFC 8878, 3.1.1). */
function zstdFrame(bytes: Buffer, windowLog: number): Buffer {
  const blockHeader = Buffer.alloc(3)
  blockHeader.writeUIntLE(bytes.length * 8 + 1, 0, 3)
  return Buffer.concat([Buffer.from('28b52ffd00', 'hex'), Buffer.from([(windowLog - 10) << 3]), blockHeader, bytes])
}

/** The members of a tar by name. */
async function untar(bytes: Buffer): Promise<Record<string, string>> {
  const members: Record<string, string> = {}
  for await (const entry of Readable.from([bytes]).pipe(extract())) {
    members[entry.header.name] = (await buffer(entry)).toString()
  }
  return members
}

/** A zip whose end record counts so many entries. */
function counting(entries: number, bytes: Buffer): Buffer {
  for (const field of [8, 10]) bytes.writeUInt16LE(entries, bytes.length - 22 + field)
  return bytes
}

/** A zip of so many entries that share the bytes of the only one of this zip. */
function sharing(entries: number, bytes: Buffer): Buffer {
  const [start, end] = [bytes.indexOf('PK\x01\x02'), bytes.length - 22]
  const records = Array.from({ length: entries }, (_, n) => {
    const record = Buffer.from(bytes.subarray(start, end))
    record.write(String.fromCharCode(97 + n), 46)
    return record
  })
  const tail = counting(entries, Buffer.from(bytes.subarray(end)))
  tail.writeUInt32LE(entries * (end - start), 12)
  return Buffer.concat([bytes.subarray(0, start), ...records, tail])
}

/** As Info-ZIP writes it: bit 11 of the flags is not set (APPNOTE.TXT, 4.4.4). */
function withoutUtf8Flags(bytes: Buffer): Buffer {
  const clear = (signature: string, flags: number) => {
    for (let at = bytes.indexOf(signature); at !== -1; at = bytes.indexOf(signature, at + 1))
      bytes.writeUInt16LE(bytes.readUInt16LE(at + flags) & ~0x800, at + flags)
  }
  clear('PK\x03\x04', 6)
  clear('PK\x01\x02', 8)
  return bytes
}

async function unzip(bytes: Buffer): Promise<Record<string, string>> {
  const members: Record<string, string> = {}
  const zip = await fromBufferPromise(bytes)
  for await (const entry of zip.eachEntry()) {
    members[entry.fileName] = (await buffer(await zip.openReadStreamPromise(entry))).toString()
  }
  return members
}

describe('GET /api/trees/{prefix}', () => {
  const long = `${'d'.repeat(120)}/${'n'.repeat(120)}.txt`
  const files = { 'a.txt': 'A', 'b/ü.html': '<p>', 'b/z': 'x'.repeat(290_000), [long]: 'L' }

  beforeAll(async () => {
    for (const [name, content] of Object.entries(files)) await service.put(`get/${name}`, content)
    await service.put('get.txt', 'beside')
    await service.put('get0', 'beside')
  })

  test('it is a tar, a zip or JSON, with one entity tag', async () => {
    const tar = await get('get/')
    expect(tar.headers['content-type']).toBe('application/x-tar')
    expect(tar.headers['content-disposition']).toBe('attachment; filename=get.tar')
    expect(await untar(tar.bytes)).toEqual(files)
    const zip = await get('get/', { accept: 'application/zip' })
    expect(zip.headers['content-type']).toBe('application/zip')
    expect(await unzip(zip.bytes)).toEqual(files)
    const json = await get('get/', { accept: 'application/json' })
    const records = JSON.parse(json.bytes.toString())
    expect(records.prefix).toBe('get/')
    const names = Object.keys(records.files)
    expect(names).toEqual(['a.txt', 'b/z', 'b/ü.html', long])
    expect(records.files['a.txt']).toEqual({
      sha256: '559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd',
      size: 1,
    })
    expect(new Set([tar, zip, json].map(({ headers }) => headers.etag)).size).toBe(1)
    for (const { headers } of [tar, zip, json]) expect(headers.vary).toContain('Accept')
    const { status } = await get('get/', { 'if-none-match': String(tar.headers.etag) })
    expect(status).toBe(304)
  })

  test('it is the same to the byte each time', async () => {
    for (const accept of ['application/x-tar', 'application/zip']) {
      const [one, other] = [await get('get/', { accept }), await get('get/', { accept })]
      expect(one.bytes.equals(other.bytes)).toBe(true)
    }
  })

  test('its tag changes with a name or a content, and is the same for an equal tree elsewhere', async () => {
    const tag = async (tree: string) => (await get(tree)).headers.etag
    await service.put('tag/one/a', 'A')
    await service.put('tag/two/a', 'A')
    const first = await tag('tag/one/')
    expect(await tag('tag/two/')).toBe(first)
    await service.put('tag/two/a', 'B')
    expect(await tag('tag/two/')).not.toBe(first)
    await service.call('POST', '/api/files/move', {
      json: { from: 'tag/one/a', to: 'tag/one/b' },
    })
    expect(await tag('tag/one/')).not.toBe(first)
  })

  test('an empty prefix is the whole store', async () => {
    const json = await get('', { accept: 'application/json' })
    expect(Object.keys(JSON.parse(json.bytes.toString()).files)).toContain('get/a.txt')
  })

  test.each([
    ['missing/', 404, 'directory_not_found'],
    ['get/a.txt/', 404, 'directory_not_found'],
    ['get', 400, 'invalid_path'],
    ['get//', 400, 'invalid_path'],
    ['get%2Fb/', 400, 'invalid_path'],
    ['/', 400, 'invalid_path'],
    ['%ff/', 400, 'invalid_path'],
  ])('%s is refused', async (tree, status, code) => {
    const answer = await get(tree)
    expect(answer).toMatchObject({ status, body: { code } })
  })
})

describe('PUT /api/trees/{prefix}', () => {
  const members: Member[] = [
    ['./', '', { type: 'directory' }],
    ['./index.html', '<h1>'],
    ['./assets/', '', { type: 'directory' }],
    ['./assets/a.js', 'a()'],
    ['./assets/._a.js', 'resource fork'],
    ['./assets/.DS_Store', 'finder'],
    ['./.DS_Store', 'finder'],
    ['__MACOSX/index.html', 'finder'],
    ['assets/__MACOSX/a.js', 'finder'],
    [`${'d'.repeat(120)}/${'n'.repeat(120)}.css`, 'a{}'],
    ['empty', ''],
    ['ü.txt', 'u'],
  ]
  const names = ['assets/a.js', `${'d'.repeat(120)}/${'n'.repeat(120)}.css`, 'empty', 'index.html', 'ü.txt']

  test.each([
    ['tar', async () => tar(...members)],
    ['gzip', async () => gzipSync(await tar(...members))],
    ['zstd', async () => zstdCompressSync(await tar(...members))],
    ['zstd with a window of 8 MiB, as of zstd -19', async () => zstdFrame(await tar(...members), 23)],
    [
      'zstd of a parallel compressor',
      async () =>
        Buffer.concat([Buffer.from('502a4d180400000000000000', 'hex'), zstdCompressSync(await tar(...members))]),
    ],
    [
      'zstd of two frames, padded with zeros',
      async () => {
        const archive = await tar(...members)
        const frames = [archive.subarray(0, 999), archive.subarray(999)].map((part) => zstdCompressSync(part))
        return Buffer.concat([...frames, Buffer.alloc(9000)])
      },
    ],
    ['zip', async () => zip(...members.flatMap(plainMember))],
    [
      'zip whose names do not say that they are UTF-8',
      async () => withoutUtf8Flags(await zip(...members.flatMap(plainMember))),
    ],
    ['tar older than POSIX, whose directories are empty files', async () => tar(...members.map(oldMember))],
    [
      'zip that bsdtar padded',
      async () => Buffer.concat([await zip(...members.flatMap(plainMember)), Buffer.alloc(9000)]),
    ],
  ])('a %s becomes the directory, whatever type it says it has', async (type, archive) => {
    const body = await archive()
    const tree = `put-${type.replaceAll(' ', '-')}/`
    const headers = { 'content-type': 'text/x-lie' }
    await service.put(`${tree}gone/index.html`, 'old')

    const first = await put(tree, body, { headers })

    expect(first).toMatchObject({
      status: 200,
      body: {
        change: { action: 'deploy', prefix: tree, added: 5, replaced: 0, removed: 1 },
        prefix: tree,
        files: 5,
        added: 5,
        replaced: 0,
        removed: 1,
        unchanged: 0,
        bytes_received: body.length,
      },
    })
    expect(Object.keys(await namesOf(tree))).toEqual(names)
    expect(first.headers.etag).toBe((await get(tree)).headers.etag)
    const page = await service.call('GET', `/static/${tree}index.html`)
    expect(page.bytes.toString()).toBe('<h1>')
    expect(page.headers['content-type']).toContain('text/html')

    const again = await put(tree, body)
    expect(again.body).toMatchObject({ change: null, added: 0, replaced: 0, unchanged: 5 })
    expect(again.headers.etag).toBe(first.headers.etag)
  })

  const oldMember = ([name, content]: Member): Member => [name, content]
  const plainMember = ([name, content]: Member): [string, string][] =>
    name === './' ? [] : [[name.replace('./', ''), String(content)]]

  test('equal files keep their record, others are replaced, missing ones removed: one change', async () => {
    await put('one/', await tar(['same', '1'], ['other', '1'], ['gone', '1'], ['dir/x', '1']))
    const record = async (name: string) => (await service.call('GET', `/api/files/one/${name}`)).bytes.toString()
    const before = await record('same')

    const { body } = await put('one/', await tar(['same', '1'], ['other', '2'], ['dir', 'a file']))

    expect(body).toMatchObject({ added: 1, replaced: 1, removed: 2, unchanged: 1, files: 3 })
    expect(await record('same')).toBe(before)
    const { bytes } = await service.call('GET', `/api/changes/${body.change?.id}`)
    expect(JSON.parse(bytes.toString()).files).toMatchObject([
      { path: 'one/dir', before: null },
      { path: 'one/dir/x', after: null },
      { path: 'one/gone', after: null },
      { path: 'one/other', before: { size: 1 }, after: { size: 1 } },
    ])
  })

  test('mode=merge removes nothing; an archive without entries removes all', async () => {
    await put('merge/', await tar(['a', '1'], ['b', '1']))
    const merged = await put('merge/', await tar(['b', '2'], ['c', '1']), { query: '?mode=merge' })
    expect(merged.body).toMatchObject({ files: 3, added: 1, replaced: 1, removed: 0 })
    for (const empty of [await tar(), await zip()]) {
      await put('merge/', await tar(['a', '1']), { query: '?mode=merge' })
      expect((await put('merge/', empty)).body).toMatchObject({ files: 0 })
      expect((await get('merge/')).status).toBe(404)
    }
  })

  test('a directory of more files than a tree may have can be merged into, but neither replaced nor copied', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `f${n}`)
    await put('many/', await tar(...names.map((name): Member => [name, ''])))
    const merge = { query: '?mode=merge' }
    const answers = [
      await put('many/', await tar(['one more', '']), merge),
      await put('many/', await tar(['another', '']), merge),
      await put('many/', await tar(['alone', ''])),
      await put('copy/', { from: 'many/' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 413, 413])
    expect(Object.keys(await namesOf('many/'))).toHaveLength(22)
  })

  test('a dry run changes nothing', async () => {
    const { headers } = await put('dry/', await tar(['a', '1'], ['b', '1']))
    const query = '?dry_run=true&version=dry'
    const dry = await put('dry/', await tar(['a', '2'], ['c', '1'], ['d', '1']), { query })
    expect(dry.body).toMatchObject({ change: null, files: 3, added: 2, replaced: 1, removed: 1 })
    expect(dry.headers.etag).toBe(headers.etag)
    expect((await get('dry/')).headers.etag).toBe(headers.etag)
    expect((await service.call('GET', '/api/versions/dry')).status).toBe(404)
  })

  test('If-Match and If-None-Match are about the whole tree', async () => {
    const [one, two] = [await tar(['a', '1']), await tar(['a', '2'])]
    const none = { headers: { 'if-none-match': '*' } }
    const { status, headers } = await put('cond/', one, none)
    expect(status).toBe(200)
    expect((await put('cond/', two, none)).status).toBe(412)
    const match = { headers: { 'if-match': String(headers.etag) } }
    expect((await put('cond/', two, match)).status).toBe(200)
    expect(await put('cond/', one, match)).toMatchObject({
      status: 412,
      body: { code: 'precondition_failed' },
    })
    expect((await put('cond-none/', one, { headers: { 'if-match': '*' } })).status).toBe(412)
  })

  test('the version is recorded with the change, or neither', async () => {
    const query = '?version=3.1&changelog=Trees'
    const { body } = await put('version/', await tar(['a', '1']), { query })
    expect(body.change).toMatchObject({ version: '3.1' })
    const { bytes } = await service.call('GET', '/api/versions/3.1')
    expect(JSON.parse(bytes.toString())).toMatchObject({
      changelog: 'Trees',
      created_by: 'admin',
      change: body.change?.id,
    })
    for (const suffix of ['', '&dry_run=true']) {
      const again = await put('version/', await tar(['a', '2']), { query: query + suffix })
      expect([again.status, again.body.code]).toEqual([409, 'version_exists'])
    }
    expect((await service.call('GET', '/static/version/a')).bytes.toString()).toBe('1')
  })

  test('another tree is copied without a byte', async () => {
    const { headers } = await put('preview/', await tar(['index.html', 'P'], ['b/c', 'C']))
    await service.put('promoted/old', 'old')
    const { body, headers: promoted } = await put('promoted/', { from: 'preview/' })
    expect(body).toMatchObject({ change: { action: 'deploy' }, added: 2, removed: 1 })
    expect(promoted.etag).toBe(headers.etag)
    expect(await put('promoted/', { from: 'no-tree/' })).toMatchObject({
      status: 404,
      body: { code: 'directory_not_found' },
    })
    expect(await put('promoted/', { from: 'preview' })).toMatchObject({ status: 400 })
  })

  describe('at a moment', () => {
    const page = async (path: string) => (await service.call('GET', `/static/${path}`)).bytes.toString()

    test('a directory is read, and restored, as a change, a version or an instant left it', async () => {
      const one = await put('past/', await tar(['a', '1'], ['b', '1'], ['c/d', '1']), {
        query: '?version=past-1',
      })
      const { change } = one.body
      // Later by the clock, too.
      await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(String(change?.at)) + 1)
      const two = await put('past/', await tar(['a', '2'], ['c', '1']))
      await put('past/', await tar(['e', '3']))

      const inParis = new Date(Date.parse(String(change?.at)) + 7_200_000)
      const withOffset = inParis.toISOString().replace('Z', '%2B02:00')
      const lower = String(change?.at).toLowerCase()
      // 1 January 10000 in UTC.
      const last = await get('past/?at=9999-12-31T23:59:59-23:59')
      expect(await untar(last.bytes)).toEqual({ e: '3' })
      for (const at of [change?.id, 'past-1', change?.at, withOffset, lower]) {
        const past = await get(`past/?at=${at}`)
        expect(await untar(past.bytes)).toEqual({ a: '1', b: '1', 'c/d': '1' })
        expect(past.headers.etag).toBe(one.headers.etag)
      }
      const restored = await put('past/', { from: 'past/', at: two.body.change?.id })
      expect(restored.body).toMatchObject({ change: { action: 'restore' }, added: 2, removed: 1 })
      expect(restored.headers.etag).toBe(two.headers.etag)
      expect(await page('past/a')).toBe('2')
      const rolledBack = await put('past/', { from: 'past/', at: 'past-1' })
      expect(rolledBack.headers.etag).toBe(one.headers.etag)
      expect(await untar((await get('past/')).bytes)).toEqual({ a: '1', b: '1', 'c/d': '1' })
      const copied = await put('past-copy/', { from: 'past/', at: String(two.body.change?.id) })
      expect(copied.headers.etag).toBe(two.headers.etag)
    })

    test.each([
      ['9007199254740000', 'change_not_found', 404],
      ['no-version', 'version_not_found', 404],
      ['2001-01-01T00:00:00Z', 'directory_not_found', 404],
      ['a%20b', 'validation_failed', 400],
      ['2026-02-30T00:00:00Z', 'validation_failed', 400],
      ['2026-11-30T24:00:00Z', 'validation_failed', 400],
      ['2026-11-30T09:30Z', 'validation_failed', 400],
    ])('%s is refused', async (at, code, status) => {
      expect(await get(`past/?at=${at}`)).toMatchObject({ status, body: { code } })
      const sent = decodeURIComponent(at)
      expect(await put('past/', { from: 'past/', at: sent })).toMatchObject({ status, body: { code } })
    })

    test('a number of more digits than a change has is named as it was sent', async () => {
      const at = '99999999999999999999'
      const body = { code: 'change_not_found', detail: `No change ${at}` }

      expect(await get(`past/?at=${at}`)).toMatchObject({ status: 404, body })
      expect(await put('past/', { from: 'past/', at })).toMatchObject({ status: 404, body })
    })

    test('what is not kept is gone', async () => {
      await using short = await start({ env: { KEEP_HISTORY_DAYS: '0' } })
      const store = async (content: string) => {
        const body = await tar(['a', content], ['same', '1'])
        const { bytes } = await short.call('PUT', '/api/trees/gone/', { body })
        return Result.parse(JSON.parse(bytes.toString())).change?.id
      }
      const [first, second] = [await store('1'), await store('2')]
      const at = (id?: number) => short.call('GET', `/api/trees/gone/?at=${id}`)
      expect(await at(first)).toMatchObject({ status: 410, body: { code: 'history_gone' } })
      expect((await at(second)).status).toBe(200)
      const restored = await short.call('PUT', '/api/trees/gone/', {
        json: { from: 'gone/', at: String(first) },
      })
      expect(restored).toMatchObject({ status: 410, body: { code: 'history_gone' } })
    })
  })

  test('a manifest may name files like its members', async () => {
    await service.put('old', 'old')
    const file = { sha256: digestOf('old') }
    const files = { sha256: file, files: file, 'a"sha256":"b': file }
    expect((await put('like/', { files })).status).toBe(200)
    expect(Object.keys(await namesOf('like/'))).toHaveLength(3)
  })

  test('a manifest names contents that are stored', async () => {
    await put('contents/', await tar(['a.txt', 'A'], ['page', '<!doctype html><p>']))
    const { 'a.txt': a = '', page = '' } = await namesOf('contents/')
    const files = { 'b.css': { sha256: a }, 'p.png/q': { sha256: page } }
    const { status, body } = await put('manifest/', { files })
    expect({ status, body }).toMatchObject({ status: 200, body: { added: 2, files: 2 } })
    const { headers, bytes } = await service.call('GET', '/static/manifest/b.css')
    expect([headers['content-type'], bytes.toString()]).toEqual(['text/css; charset=utf-8', 'A'])

    const marked = Buffer.from(`\ufeff${JSON.stringify({ files })}`)
    const same = await put('manifest/', marked)
    expect({ status: same.status, body: same.body }).toMatchObject({
      status: 200,
      body: { unchanged: 2 },
    })

    const unknown = ['0'.repeat(64), '1'.repeat(64)]
    const more = unknown.map((sha256, index) => [`f${index}`, { sha256 }])
    const refused = await put('manifest/', { files: { ...files, ...Object.fromEntries(more) } })
    expect(refused).toMatchObject({ status: 409, body: { code: 'contents_missing' } })
    expect(refused.body.missing?.toSorted()).toEqual(unknown)
    expect(Object.keys(await namesOf('manifest/'))).toEqual(['b.css', 'p.png/q'])
  })

  describe('PUT /api/contents/{sha256}', () => {
    const send = (content: string, digest = digestOf(content), call: Call = {}) =>
      service.call('PUT', `/api/contents/${digest}`, { body: content, ...call })

    test('a content is kept until a manifest names it', async () => {
      const contents = ['small', 'l'.repeat(100_000)]
      for (const content of contents) expect((await send(content)).status).toBe(201)
      for (const content of contents) expect((await send(content)).status).toBe(204)
      const named = contents.map((each, index) => [`c${index}`, { sha256: digestOf(each) }])

      const { body } = await put('sent/', { files: Object.fromEntries(named) })

      expect(body).toMatchObject({ added: 2 })
      for (const [index, content] of contents.entries()) {
        const { bytes } = await service.call('GET', `/static/sent/c${index}`)
        expect(bytes.toString()).toBe(content)
      }
      expect((await send('small')).status).toBe(204)
      await service.call('POST', '/api/files/delete', { json: { prefix: 'sent/' } })
      expect((await put('sent/', { files: Object.fromEntries(named) })).status).toBe(200)
    })

    test('it is refused with another digest, too large, encoded or by a viewer', async () => {
      expect(await send('this', digestOf('that'))).toMatchObject({
        status: 400,
        body: { code: 'digest_mismatch' },
      })
      expect((await send('x', 'ABC')).body.code).toBe('validation_failed')
      const large = 'x'.repeat(300_001)
      expect((await send(large)).body.code).toBe('file_too_large')
      const chunked = { headers: { 'transfer-encoding': 'chunked' } }
      expect((await send(large, digestOf(large), chunked)).body.code).toBe('file_too_large')
      const encoded = { headers: { 'content-encoding': 'gzip' } }
      expect((await send('x', digestOf('x'), encoded)).status).toBe(415)
      expect((await send('x', digestOf('x'), { user: 'viewer' })).status).toBe(403)
      const left = async () => (await service.storedContents()).join()
      await expect.poll(left).not.toContain(digestOf('this'))
    })
  })

  describe('refuses, and changes nothing', () => {
    const block = (bytes: Buffer, at: number) => bytes.subarray(0, at)
    const damaged = (bytes: Buffer, at: number) => {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] ?? 0) ^ 0xff
      return copy
    }
    const two = () => tar(['a', 'A'.repeat(600)], ['b', 'B'])
    const zeros = () => tar(['zeros', Buffer.alloc(2048)])
    // A name that its library would refuse to write.
    const rename = (bytes: Buffer, from: string, to: string) =>
      Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1')
    const named =
      (name: string, header: Partial<Header> = {}) =>
      async () =>
        tar(['fine', '1'], [name, '2', header])

    test.each<[string, () => Promise<Buffer>, number, string, string?]>([
      ['a symbolic link', () => tar(['l', '', { type: 'symlink', linkname: 'x' }]), 400, 'invalid_archive', '"l"'],
      ['a hard link', () => tar(['l', '', { type: 'link', linkname: 'x' }]), 400, 'invalid_archive', '"l"'],
      ['a device', () => tar(['d', '', { type: 'block-device' }]), 400, 'invalid_archive', '"d"'],
      ['a named pipe', () => tar(['p', '', { type: 'fifo' }]), 400, 'invalid_archive', '"p"'],
      ['a sparse file', named('s', { pax: { 'GNU.sparse.major': '1' } }), 400, 'invalid_archive', '"s"'],
      ['an absolute name', named('/etc/passwd'), 400, 'invalid_archive', '"/etc/passwd"'],
      [
        'an absolute name of a directory',
        () => tar(['/etc/', '', { type: 'directory' }]),
        400,
        'invalid_archive',
        '"/etc/"',
      ],
      ['..', named('x/../../y'), 400, 'invalid_archive', '"x/../../y"'],
      ['.. of a directory', () => tar(['../', '', { type: 'directory' }]), 400, 'invalid_archive', '"../"'],
      ['a backslash', named('a\\b'), 400, 'invalid_archive', 'a\\\\b'],
      [
        'a backslash in a zip',
        async () => rename(await zip(['aa/b', 'x']), 'aa/b', 'aa\\b'),
        400,
        'invalid_archive',
        'aa\\b',
      ],
      [
        'a name in Latin-1',
        // The checksum of the header stays right.
        async () => rename(await tar(['ab', '1']), 'ab', '\u00c3\0'),
        400,
        'invalid_archive',
        'not valid UTF-8',
      ],
      [
        'a name in a zip that is not the UTF-8 that it says',
        async () => rename(await zip(['aa/\u00fc', 'x']), '\u00c3\u00bc', '\u00fc\u00fc'),
        400,
        'invalid_archive',
        'not valid UTF-8',
      ],
      ['a control character', named('a\u0001'), 400, 'invalid_archive', 'a\\u0001'],
      ['an empty segment', named('a//b'), 400, 'invalid_archive', '"a//b"'],
      ['one path twice', named('./fine'), 400, 'invalid_archive', '"./fine"'],
      ['one path in two Unicode forms', () => tar(['\u00fc', '1'], ['u\u0308', '2']), 400, 'invalid_archive'],
      ['a file below a file', named('fine/x'), 409, 'path_conflict', 'refused/fine/x'],
      ['a file that is a directory', () => tar(['d/x', '1'], ['d', '1']), 409, 'path_conflict', 'refused/d'],
      ['a tar that is cut in a file', async () => block(await two(), 1000), 400, 'invalid_archive', '"a"'],
      ['a tar that is cut between files', async () => block(await two(), 1536), 400, 'invalid_archive'],
      [
        'a tar that is cut after a long name',
        async () => block(await tar(['a', 'A'.repeat(600)], ['b'.repeat(150), 'B']), 2560),
        400,
        'invalid_archive',
      ],
      ['a tar with half of its end mark', async () => block(await two(), 3072), 400, 'invalid_archive'],
      ['a tar without an end mark after zeros', async () => block(await zeros(), 2560), 400, 'invalid_archive'],
      ['a wrong checksum of a tar header', async () => damaged(await two(), 1540), 400, 'invalid_archive'],
      ['a cut gzip', async () => block(gzipSync(await two()), 100), 400, 'invalid_archive'],
      [
        'a wrong checksum of gzip',
        async () => damaged(gzipSync(await two()), gzipSync(await two()).length - 6),
        400,
        'invalid_archive',
      ],
      ['a cut zstd', async () => zstdCompressSync(await two()).subarray(0, -3), 400, 'invalid_archive'],
      [
        'a zstd whose second frame is damaged',
        async () => {
          const frame = zstdCompressSync(await two())
          return Buffer.concat([frame, damaged(zstdCompressSync(await tar(['c', 'C'])), 0)])
        },
        400,
        'invalid_archive',
        'more than zeros follow its end',
      ],
      [
        'zstd with a window of 16 MiB',
        async () => zstdFrame(await two(), 24),
        400,
        'invalid_archive',
        'the zstd needs a window of more than 8 MiB: compress it without --long and --ultra',
      ],
      ['gzip in gzip', async () => gzipSync(gzipSync(await two())), 400, 'invalid_archive'],
      ['a cut zip', async () => (await zip(['a', 'A'], ['b', 'B'])).subarray(0, -10), 400, 'invalid_archive'],
      [
        'a zip that counts fewer entries',
        async () => counting(1, await zip(['a', ''], ['b', ''])),
        400,
        'invalid_archive',
      ],
      [
        'a zip whose comment ends like a zip without entries',
        async () => {
          const [archive, none] = [await zip(['a', ''], ['b', '']), await zip()]
          archive.writeUInt16LE(none.length, archive.length - 2)
          return Buffer.concat([archive, none])
        },
        400,
        'invalid_archive',
      ],
      [
        'a zip whose entries share bytes',
        async () => sharing(2, await zip(['a', randomBytes(200).toString('hex')])),
        400,
        'invalid_archive',
        '"b": it shares bytes with another entry',
      ],
      ['a damaged zip entry', async () => damaged(await zip(['a', 'A'.repeat(50)]), 33), 400, 'invalid_archive'],
      [
        'a wrong checksum of a zip entry',
        async () => rename(await zip(['a', 'A']), '\x8b\x9e\xd9\xd3', 'zzzz'),
        400,
        'invalid_archive',
        '"a"',
      ],
      ['a symbolic link in a zip', () => zip(['l', 'x', 0o120777]), 400, 'invalid_archive', '"l"'],
      ['.. in a zip', async () => rename(await zip(['aa/b', 'x']), 'aa/b', '../b'), 400, 'invalid_archive', '../b'],
      ['no archive at all', async () => Buffer.from('hello'), 400, 'invalid_archive'],
      ['an empty body', async () => Buffer.alloc(0), 400, 'invalid_archive'],
      [
        'too many files',
        () => tar(...Array.from({ length: 21 }, (_, n): Member => [`f${n}`, ''])),
        413,
        'tree_too_large',
      ],
      [
        'too many bytes',
        () => tar(...Array.from({ length: 4 }, (_, n): Member => [`f${n}`, Buffer.alloc(290_000)])),
        413,
        'tree_too_large',
      ],
      [
        'a bomb',
        async () => gzipSync(Buffer.concat([await tar(['._x', Buffer.alloc(8_000_000)])])),
        413,
        'tree_too_large',
      ],
      [
        'a large zip of what is skipped',
        () => zip(['._x', randomBytes(3_000_000).toString('latin1')]),
        413,
        'tree_too_large',
      ],
      ['a file that is too large', () => tar(['big', Buffer.alloc(300_001)]), 413, 'file_too_large'],
      [
        'a manifest with bad digests, counting each',
        async () => Buffer.from('{"files":{"a":{"sha256":"x"},"b":{"sha256":1},"c":5}}'),
        400,
        'validation_failed',
        '/files/a/sha256: must be 64 hex digits in lower case (and 2 more, see errors)',
      ],
      [
        'a manifest of too many names, before it looks at those that follow',
        async () => {
          const named = Array.from({ length: 22 }, (_, n) => [`f${n}`, { sha256: n < 21 ? digestOf('old') : 'x' }])
          return Buffer.from(JSON.stringify({ files: Object.fromEntries(named) }))
        },
        413,
        'tree_too_large',
      ],
      [
        'a manifest of too many bytes',
        async () => Buffer.concat([Buffer.from('{"files":{'), Buffer.alloc(33_554_432, ' ')]),
        413,
        'tree_too_large',
        '33554432 bytes of JSON',
      ],
      [
        'a manifest with ..',
        async () => Buffer.from(`{"files":{"../a":{"sha256":"${'0'.repeat(64)}"}}}`),
        400,
        'invalid_archive',
        '"../a"',
      ],
      [
        'a manifest with a name that is not UTF-8',
        async () => Buffer.from(`{"files":{"\xff":{"sha256":"${digestOf('old')}"}}}`, 'latin1'),
        400,
        'malformed_body',
        'not valid UTF-8',
      ],
      [
        'a manifest with a name twice, in two spellings of JSON',
        async () => {
          const file = `{ "sha256" : "${digestOf('old')}" }`
          return Buffer.from(`{ "files": { "a": ${file}, "\\u0061": ${file} } }`)
        },
        400,
        'invalid_archive',
        'twice',
      ],
      ['JSON that is cut', async () => Buffer.from('{"files":{'), 400, 'malformed_body'],
      ['unknown JSON', async () => Buffer.from('{"form":"x/"}'), 400, 'validation_failed', '/from: is missing'],
      [
        'an unknown field of a file',
        async () => Buffer.from(`{"files":{"a":{"sha256":"${digestOf('old')}","mode":1}}}`),
        400,
        'validation_failed',
        '/files/a/mode',
      ],
    ])('%s', async (_name, archive, status, code, detail = '') => {
      await service.put('refused/old', 'old')
      const answer = await put('refused/', await archive())
      expect(answer).toMatchObject({ status, body: { code } })
      expect(answer.body.detail).toContain(detail)
      expect(Object.keys(await namesOf('refused/'))).toEqual(['old'])
    })

    test('a manifest in another charset than UTF-8, but no archive', async () => {
      const files = { old: { sha256: digestOf('old') } }
      const headers = { 'content-type': 'application/json; charset=iso-8859-1' }
      await service.put('charset/old', 'old')
      const answer = await put('charset/', Buffer.from(JSON.stringify({ files })), { headers })
      expect([answer.status, answer.body.code]).toEqual([415, 'unsupported_media_type'])
      expect((await put('charset/', await two(), { headers })).status).toBe(200)
    })

    test('a body that is encoded, a prefix that is no tree, a viewer, and a path that is a file', async () => {
      const body = await two()
      const encoded = { headers: { 'content-encoding': 'gzip' } }
      expect((await put('refused/', gzipSync(body), encoded)).status).toBe(415)
      const described = JSON.parse(String((await service.call('GET', '/openapi.json')).bytes))
      expect(described.paths['/api/trees/{path}'].put.responses).toHaveProperty('415')
      expect((await put('refused', body)).body.code).toBe('invalid_path')
      const digest = { 'content-digest': `sha-256=:${'A'.repeat(43)}=:` }
      expect((await put('refused/', body, { headers: digest })).body.code).toBe('digest_mismatch')
      expect((await put('refused/', body, { user: 'viewer' })).status).toBe(403)
      await service.put('a-file', '1')
      expect((await put('a-file/', body)).body.code).toBe('path_conflict')
      for (const query of ['?mode=x', '?changelog=without-a-version'])
        expect((await put('refused/', body, { query })).body.code).toBe('validation_failed')
    })
  })

  test('refused contents leave no bytes', async () => {
    const contents = ['x'.repeat(200_000), 'y'.repeat(200_000)]
    const [one = '', other = ''] = contents
    await put('refused/', await tar(['big', one], ['../x', '1']))
    await put('refused/', await zip(['big', other], ['big', 'y']))
    const left = async () =>
      (await service.storedContents()).filter(
        (name) => name.startsWith(`${service.dataDir}/tmp/`) || contents.some((each) => name.includes(digestOf(each))),
      )
    await expect.poll(left).toEqual([])
  })
})

test('a content without a file is refused where it exceeds the quota with the files and other such contents', async () => {
  await using limited = await start({ env: { QUOTA_BYTES: '300000', KEEP_HISTORY_DAYS: '30' } })
  const send = (content: string) => limited.call('PUT', `/api/contents/${digestOf(content)}`, { body: content })
  await limited.put('a', 'a'.repeat(100_000))
  expect((await send('b'.repeat(100_000))).status).toBe(201)
  await limited.put('past', 'p'.repeat(90_000))
  await limited.call('DELETE', '/api/files/past')

  // The past makes room, both others do not.
  expect((await send('c'.repeat(90_000))).status).toBe(201)
  const refused = await send('d'.repeat(20_000))

  expect(refused).toMatchObject({ status: 507, body: { code: 'quota_exceeded' } })
  const early = await send('e'.repeat(250_000))
  expect(early).toMatchObject({ status: 507, body: { code: 'quota_exceeded' } })
  expect((await send('b'.repeat(100_000))).status).toBe(204)
  const left = async () => (await limited.storedContents()).join()
  await expect.poll(left).not.toContain(digestOf('p'.repeat(90_000)))
  await expect.poll(left).not.toContain(digestOf('d'.repeat(20_000)))
})

test('what the decompression of a zstd takes counts as memory of request bodies', async () => {
  await using small = await start({ env: { MAX_BODY_MEMORY_BYTES: '5000000' } })
  const put = async (body: Buffer) => {
    const response = await small.call('PUT', '/api/trees/a/', { body })
    return [response.status, response.headers['retry-after'], response.body.code]
  }
  const archive = await tar(['a', 'content'])

  expect(await put(zstdCompressSync(archive))).toEqual([503, '2', 'unavailable'])
  expect(await put(gzipSync(archive))).toEqual([200, undefined, undefined])
})

test('of the contents that a manifest lacks, 1,000 are named', async () => {
  await using own = await start()
  const names = Array.from({ length: 1001 }, (_, at) => `${at}`)
  const files = Object.fromEntries(names.map((name) => [name, { sha256: digestOf(name) }]))

  const { status, body } = await own.call('PUT', '/api/trees/a/', { json: { files } })

  expect([status, body.code]).toEqual([409, 'contents_missing'])
  expect(body.missing).toHaveLength(1000)
})

test('small contents of an archive do not wait in the memory of a replica', async () => {
  await using stores = await startSharedStores()
  await using replica = await start({ env: stores.env })
  const content = (at: number) => `${at} `.padEnd(32_000, 'small')
  const names = Array.from({ length: 300 }, (_, at) => `f${at}`)
  const body = await tar(...names.map((name, at): Member => [name, content(at)]))

  expect((await replica.call('PUT', '/api/trees/many/', { body })).status).toBe(200)

  const kept = await stores.query('select from static_service.past_files where change_id = 0')
  expect(kept.length).toBeGreaterThan(250)
  const { bytes } = await replica.call('GET', '/static/many/f7')
  expect(bytes.toString()).toBe(content(7))
})
