import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { encodePath } from '../../src/files/file-path.ts'
import { emptyService } from '../support/empty-service.ts'
import { inspect, plant, probe, readTable, type Target } from '../support/hostile.ts'

const invalid = [
  '.',
  '..',
  '../sentinel',
  '../../sentinel',
  'a/../../sentinel',
  'a/./b',
  'a//b',
  '//sentinel',
  'a\\b',
  '..\\..\\sentinel',
  'C:\\boot.ini',
  'nul\0byte',
  'tab\there',
  'line\nbreak',
  'return\rcarriage',
  'delete\x7f',
  'c1\u0085control',
  'evil\u202egnp.exe',
  'isolate\u2066d',
  'a'.repeat(256),
  `${'a'.repeat(250)}/`.repeat(4) + 'a'.repeat(25),
  `${'d/'.repeat(32)}f`,
  '\u00e9'.repeat(128),
]

const strange = [
  '%2e%2e%2fsentinel',
  '%252e',
  '...',
  '.htaccess',
  '-rf',
  '~',
  'con',
  'a b',
  ' leading',
  'trailing ',
  'trailing.',
  "quote'",
  '<script>',
  '$(reboot)',
  '`reboot`',
  'a?b#c',
  'a+b&c=d',
  '日本語/ファイル.txt',
  '👩‍👩‍👧/🏳️‍🌈',
  'مرحبا',
  '\u200f\u200e\u00a0',
  '\ufeffbom',
  'constructor',
  '__proto__/toString',
  'files',
  'Tree',
  `${'d/'.repeat(31)}f`,
  'a'.repeat(255),
  '\u00e9'.repeat(127),
]

test.each(invalid.map((path) => [path]))('%j is not a path anywhere', async (path) => {
  await using service = await emptyService()
  const url = encodePath(path)

  const answers = [
    await service.put(path),
    await service.send('upload', [{ name: 'file', content: 'x', filename: path }]),
    await service.call('GET', `/api/files/${url}`),
    await service.call('PUT', `/api/files/${url}`, { body: 'x' }),
    await service.call('DELETE', `/api/files/${url}`),
  ]

  const ends = answers.map(({ status, body }) => `${status} ${body.code}`)
  expect(new Set(ends.map((end) => refusals.get(end) ?? end))).toEqual(new Set(['refused']))
  await expect.poll(() => service.storedContents()).toEqual([])
})

// A break inside a header makes the form malformed.
const refusals = new Map(['400 invalid_path', '400 malformed_body', '400 file_missing'].map((end) => [end, 'refused']))

test.each(strange.map((path) => [path]))('%j is a path like any other', async (path) => {
  await using service = await emptyService()
  const url = encodePath(path)

  const stored = await service.put(path, 'content')

  expect([stored.status, stored.body.path]).toEqual([201, path.normalize('NFC')])
  const described = await service.call('GET', `/api/files/${url}`)
  expect(described.body).toEqual(stored.body)
  const served = await service.call('GET', `/static/${url}`)
  expect(served.bytes.toString()).toBe('content')
  const deleted = await service.call('DELETE', `/api/files/${url}`)
  expect(deleted.status).toBe(204)
})

test.each(['categories', 'tree', 'upload'])('no path begins with %s', async (name) => {
  await using service = await emptyService()

  const answers = [await service.put(name), await service.put(`${name}/a`), await service.put(`/${name}/a`)]
  const second = await service.put(`a/${name}`)

  expect(answers.map(({ body }) => body.code)).toEqual(Array(3).fill('reserved_path'))
  expect(second.status).toBe(201)
})

test.each([
  ['%ff', 'not UTF-8'],
  ['%', 'half an escape'],
  ['%ed%a0%80', 'a surrogate'],
  ['%c0%ae%c0%ae/x', 'an overlong dot'],
])('a URL of %s is not a path: %s', async (path) => {
  await using service = await emptyService()

  const { status, body } = await service.call('GET', `/api/files/${path}`)

  expect([status, body.code]).toEqual([400, 'invalid_path'])
})

test.each([
  ['GET', '/api/files?search=a%00b'],
  ['GET', '/api/changes?by=a%00b'],
  ['GET', '/api/versions/a%00b'],
  ['GET', '/api/links?path=a%00b'],
  ['DELETE', '/api/links/a%00b'],
  ['POST', '/api/auth/login', { username: 'a\0b', password: 'a\0b' }],
])('U+0000 in %s %s is no fault of the service', async (method, path, json?: object) => {
  await using service = await emptyService()

  const { status } = await service.call(method, path, { json })

  expect([200, 400, 401, 404]).toContain(status)
})

test.each(['%2F', '%2f'])('%s is not a path separator in a URL', async (slash) => {
  await using service = await emptyService()
  await service.put('a/b')
  await service.call('GET', '/api/files/a/b')

  const answers = [
    await service.call('GET', `/api/files/a${slash}b`),
    await service.call('HEAD', `/api/files/a${slash}b`),
    await service.call('PUT', `/api/files/a${slash}b`, { body: 'x' }),
    await service.call('DELETE', `/api/files/a${slash}b`),
  ]

  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  expect(answers[0]?.body.code).toBe('file_not_found')
  const listed = await service.call('GET', `/api/files?prefix=${slash}a${slash}`)
  expect(listed.body.files?.map(({ path }) => path)).toEqual(['a/b'])
})

test('a file name that is not UTF-8 is refused', async () => {
  await using service = await emptyService()
  const content = Buffer.from([0xff, 0xfe])

  const { status, body } = await service.send('upload', [
    { name: 'path', content },
    { name: 'file', content: 'x', filename: 'x' },
  ])

  expect([status, body.code]).toEqual([400, 'invalid_path'])
})

// A draft that nobody closes ends the whole process when its handle is collected as garbage.
test.each(['upload', 'upload/batch'])('such a file, sent to %s, leaves nothing open', async (to) => {
  await using service = await emptyService()
  const name = to === 'upload' ? 'file' : 'files'

  const { body } = await service.send(to, [{ name, content: 'x', filename: '\ufffd' }])

  expect(body.code).toBe('invalid_path')
  await expect.poll(() => service.storedContents()).toEqual([])
})

// A connection for each of the requests would cost as much as the requests.
function openAgent() {
  const agent = new Agent({ keepAlive: true })
  onTestFinished(() => agent.destroy())
  return agent
}

test('no name reads, changes or adds a file outside the store', async () => {
  await using service = await emptyService()
  const { dataDir: data, port } = service
  const target: Target = {
    port,
    data,
    outside: dirname(data),
    token: await service.tokenOf('admin'),
    agent: openAgent(),
    isBrief: process.env.TEST_STORAGE === 'shared',
  }
  plant(target.outside, data)
  const tables = target.isBrief ? [] : ['hostile-filenames.json', 'path-traversal.json'].flatMap(readTable)

  const names = new Set([...invalid, ...strange, ...tables]).values()
  const breaches: string[] = []
  const probeNames = async () => {
    for (const name of names) breaches.push(...(await probe(target, name)))
  }
  // Several at a time share statements and commits.
  await Promise.all(Array.from({ length: 8 }, probeNames))

  expect(breaches).toEqual([])
  expect(inspect(target)).toEqual([])
})

test('the same probes find what is wrong with a server that trusts names', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'static-broken-'))
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }))
  const data = join(outside, 'data')
  mkdirSync(data)
  plant(outside, data)
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent((request.url ?? '').replace(/^\/(?:static|api\/files)\//, ''))
    const [, field] = /name="path"\r\n\r\n([^\r]*)/.exec(await text(request)) ?? []
    try {
      if (field) writeFileSync(join(data, field), 'planted by a probe')
      response.end(readFileSync(join(data, name)))
    } catch {
      response.writeHead(404).end()
    }
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // An address with a port, since we listen on one.
  const target: Target = { port, data, outside, token: 'x', agent: openAgent(), isBrief: false }

  const read = await probe(target, '../sentinel')
  await probe(target, '../planted')

  expect(read).toContain('/static/..%2Fsentinel: read a sentinel')
  expect(inspect(target)).toContain(join(outside, 'planted'))
  expect(inspect(target)).toContain(`${outside}/sentinel was changed`)
})
