import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { extract } from 'tar-stream'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { type Service, start } from '../support/start.ts'

let service: Service
beforeAll(async () => {
  service = await start({ env: { MAX_UPLOAD_BYTES: '300000' } })
  return () => service[Symbol.asyncDispose]()
})

const get = (tree: string, headers: Record<string, string> = {}) =>
  service.call('GET', `/api/trees/${tree}`, { headers })

/** The members of a tar by name. */
async function untar(bytes: Buffer): Promise<Record<string, string>> {
  const members: Record<string, string> = {}
  for await (const entry of Readable.from([bytes]).pipe(extract())) {
    members[entry.header.name] = (await buffer(entry)).toString()
  }
  return members
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
