import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { dataDirectory } from '../../../../test/support/not-tested.ts'
import { exchange, type Raw, request, type StaticService, startStatic } from '../support/static-start.ts'

// Files that must never come out lie beside the stored ones, above them, and in the system. Each hostile target is sent
// as raw bytes, percent-encoded, and percent-encoded twice; the same is done to a server that is deliberately naive, so
// that we know that these targets would have found the files.

const sentinel = 'SENTINEL-THAT-MUST-NOT-COME-OUT'
let service: StaticService
let naive: Server

beforeAll(async () => {
  service = await startStatic()
  await service.put('a.txt', 'hello')
  await service.put('%2e', 'percent, two, e')
  const places = ['blobs/secret.txt', 'tmp/secret.txt', 'secret.txt', '../secret.txt']
  for (const place of places) await writeFile(join(service.dataDir, place), sentinel)
  naive = createServer(async (incoming, outgoing) => {
    const path = decodeURIComponent(incoming.url?.replace(/^\/static\//, '') ?? '')
    const found = await readFile(join(service.dataDir, 'blobs', path)).catch(() => undefined)
    outgoing.writeHead(found ? 200 : 404).end(found)
  })
  await new Promise<void>((done) => naive.listen(0, '127.0.0.1', done))
})
afterAll(async () => {
  naive.close()
  await service[Symbol.asyncDispose]()
})

const leaks = ({ body }: Raw) => body.includes(sentinel) || body.includes('root:x:') || body.includes('SQLite format 3')

const askNaive = (target: string) => {
  const { port } = naive.address() as AddressInfo // An address with a port, since it listens on one.
  return exchange(port, request(target, {}, 'GET'))
}

const encodeAll = (text: string) =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

// Bytes that would end the request line or the request are encoded even in the raw form: else it is another request.
const raw = (text: string) =>
  Buffer.from(text)
    .toString('latin1')
    .replace(/[\0-\x20\x7f]/g, (byte) => encodeURIComponent(byte))

const targetsOf = (path: string) => [raw(path), encodeAll(path), encodeAll(encodeAll(path)), encodeURIComponent(path)]

describe('a hostile path finds nothing', () => {
  test.each([
    ['..', 400],
    ['../secret.txt', 400],
    ['../../secret.txt', 400],
    ['..%2fsecret.txt', 404],
    ['%2e%2e/secret.txt', 400],
    ['%2E%2E%2Fsecret.txt', 404],
    ['.%2e/secret.txt', 400],
    ['./secret.txt', 400],
    ['a/../../secret.txt', 400],
    ['a/./b', 400],
    ['a//b', 400],
    ['a/..', 400],
    ['..\\secret.txt', 400],
    ['..%5csecret.txt', 400],
    ['a.txt%00', 400],
    ['a.txt%00.png', 400],
    ['a%0d%0aSet-Cookie:%20x=y', 400],
    ['a%7f', 400],
    ['a%c2%80', 400],
    ['%e2%80%aegnp.exe', 400],
    ['a%2f', 404],
    ['a/', 404],
    ['..%2f/', 404],
    ['%2fa.txt', 404],
    ['/a.txt', 404],
    ['//a.txt', 404],
    ['/etc/passwd', 404],
    ['%ff', 400],
    ['%c0%ae%c0%ae/secret.txt', 400],
    ['%ed%a0%80', 400],
    ['%', 400],
    ['%zz', 400],
    ['%252e%252e%252fsecret.txt', 404],
    ['%u002e%u002e/secret.txt', 400],
    ['', 404],
    ['A.TXT', 404],
    ['a.txt%20', 404],
    ['a.txt.', 404],
    ['a.txt::$DATA', 404],
    ['C:/windows/win.ini', 404],
    ['constructor', 404],
    ['__proto__', 404],
    ['upload', 404],
    ['tree/x', 404],
    ['categories', 404],
    ['x'.repeat(255), 404],
    ['x'.repeat(256), 400],
    [`${'x/'.repeat(31)}x`, 404],
    [`${'x/'.repeat(32)}x`, 400],
    [`${'y'.repeat(200)}/`.repeat(6), 400],
  ])('/static/%s', async (path, status) => {
    const answer = await service.ask(`/static/${path}`)

    expect(answer.status).toBe(status)
    expect(leaks(answer)).toBe(false)
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.headers['cache-control'] ?? 'no-store').toBe('no-store')
  })

  test.each([
    ['/static/a.txt', 'hello'],
    ['/static/%61.txt', 'hello'],
    ['/static/%61%2e%74%78%74', 'hello'],
    ['http://elsewhere/static/a.txt', 'hello'],
    ['/static/a.txt?x=../../secret.txt', 'hello'],
    ['/static/a.txt?', 'hello'],
    ['/static/a.txt?%ff&&=&a=1&a=2', 'hello'],
    ['/static/%252e', 'percent, two, e'],
  ])('while %s finds its file', async (target, content) => {
    const answer = await service.ask(target)

    expect([answer.status, answer.body.toString()]).toEqual([200, content])
  })

  test('a name is found in whichever form of Unicode it is asked for', async () => {
    await service.put('caf\u00e9.txt', 'composed')

    const answer = await service.ask('/static/cafe%cc%81.txt')

    expect(answer.body.toString()).toBe('composed')
  })
})

// The negative control: without it the tests below would also pass if their targets could find nothing anywhere.
test.each([
  '../secret.txt',
  '../../secret.txt',
  '%2e%2e/secret.txt',
  '%2e%2e%2f%2e%2e%2fsecret.txt',
  'x/../../secret.txt',
  `${'../'.repeat(20)}etc/passwd`,
  'secret.txt',
])('a naive server gives out what ours does not: %s', async (path) => {
  const theirs = await askNaive(`/static/${path}`)
  const ours = await service.ask(`/static/${path}`)

  expect(leaks(theirs)).toBe(true)
  expect(leaks(ours)).toBe(false)
})

const Collection = z.object({
  cases: z.array(
    z.union([
      z.object({ payload: z.string() }).transform(({ payload }) => payload),
      z.object({ filename: z.string() }).transform(({ filename }) => filename),
    ]),
  ),
})

const readCollection = async (name: string) => {
  const file = join(dataDirectory('FILES_DATA'), name)
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? [] : Collection.parse(JSON.parse(text)).cases
}

// Collections name their goal as {FILE}; here that is a sentinel, at each depth there is one.
const aim = (path: string) =>
  path.includes('{FILE}') ? ['secret.txt', 'etc/passwd'].map((goal) => path.replaceAll('{FILE}', goal)) : [path]

describe.each(['path-traversal.json', 'hostile-filenames.json'])('the collection %s', async (name) => {
  const paths = (await readCollection(name)).flatMap(aim)

  test(`finds nothing by any of its ${paths.length} paths in any encoding`, async () => {
    const targets = [...new Set(paths.flatMap(targetsOf))]

    const answers = await askAll(targets)

    expect(answers.filter(leaks)).toEqual([])
    expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual(paths.length > 0 ? [400, 404] : [])
    expect(dirname(service.dataDir)).not.toBe('/')
  })
})

/** Ten at a time: one after another would take long, all at once would run out of ports. */
async function askAll(targets: string[]): Promise<Raw[]> {
  const answers: Raw[] = []
  const left = targets.values()
  const work = Array.from({ length: 10 }, async () => {
    for (const target of left) answers.push(await service.ask(`/static/${target}`))
  })
  await Promise.all(work)
  return answers
}
