import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { checkEdge } from './proxy-edge.ts'
import { tryConsole, tryDocsPages } from './proxy-pages.ts'
import { type Kind, kinds, standBefore } from './support/fronts.ts'
import { compareFiles } from './support/same.ts'
import { password, type Services, startServices } from './support/services.ts'
import { step, until } from './support/step.ts'
import { ask, begin, direct, formType, frameFile, headerOf, logIn, type Side, through, upload } from './support/wire.ts'

// The services behind real proxies, configured by the examples of docs/proxy, over TLS.

const mebibyte = 1024 * 1024
const large = createHash('shake256', { outputLength: 48 * mebibyte })
  .update('large')
  .digest()

for (const kind of kinds) await tryBehind(kind)

async function tryBehind(kind: Kind) {
  await using services = await startServices(
    {
      TRUST_PROXY: '127.0.0.1',
      STATIC_OFFLOAD: kind,
      MAX_UPLOAD_BYTES: String(64 * mebibyte),
      PUBLIC_BASE_URL: 'https://example.com/files',
      CORS_ORIGIN: 'https://console.example.com',
    },
    {
      DOMAIN_SERVICE_URL: 'https://domains.example.com',
      STATIC_SERVICE_URL: 'https://files.example.com',
    },
  )
  if (kind === 'nginx') letGroupRead(services.dataDir)
  const { domains, files, dataDir } = services
  const ports = {
    domainPort: domains.port,
    staticPort: files.port,
    consolePort: services.console.port,
  }
  const places = { ...ports, dataDir }
  await using front = await standBefore(kind, places)
  // As if each file had been deleted between the service's response and the proxy's open().
  await using blind = await standBefore(kind, { ...places, dataDir: join(dataDir, 'nothing') })
  const zones = through(front, 'domains.example.com')
  const store = through(front, 'files.example.com')
  const blinded = through(blind, 'files.example.com')
  await until('certificates are there', async () => {
    const answers = await Promise.all([zones, store, blinded].map((side) => ask(side, '/health'))).catch(() => [])
    return answers.length > 0 || undefined
  })
  const token = await logIn(store, password)

  await step(`${kind}: an upload streams to disk`, () => streamUpload(store, token, dataDir))
  await step(`${kind}: a too large upload gets the service's own error`, () => sendTooMuch(store, token))
  await step(`${kind}: conditional zone requests pass`, () => changeZone(zones))
  await step(`${kind}: files are identical to the service's responses`, () =>
    compareFiles({ direct: direct(files.port), proxied: store, token }),
  )
  await step(`${kind}: also if the proxy finds none of them`, () =>
    compareFiles({ direct: direct(files.port), proxied: blinded, token }),
  )
  await step(`${kind}: the proxy sends large files, and nothing else`, () => checkOffload(services, store, kind))
  await step(`${kind}: a file deleted during its download is sent completely`, () =>
    deleteWhileSent(services, store, token),
  )
  await step(`${kind}: the docs pages by host name and by prefix`, () => tryDocsPages(front))
  await step(`${kind}: the console on a host of its own`, () => tryConsole(front))
  await step(`${kind}: HSTS, unknown host names, and a limit of logins`, () => checkEdge(front, kind))
  await step(`${kind}: a client cannot forge its address`, () => spoof(services, store))
  const prefixed = through(front, 'example.com', '/files')
  await step(`${kind}: both services by prefix`, () => usePrefix(through(front, 'example.com', '/domains'), prefixed))
  await step(`${kind}: files by prefix are identical to the service's responses`, () =>
    compareFiles({ direct: direct(files.port), proxied: prefixed, token }),
  )
  await step(`${kind}: a client cannot announce an offload by itself`, async () => {
    const headers = { 'x-static-offload': kind }
    const answer = await ask(prefixed, '/static/same/noise.bin', { headers })
    assert.equal(answer.body.length, 400_000)
  })
}

// Runs the commands of docs/proxy.md: nginx of the example runs as www-data.
function letGroupRead(dataDir: string) {
  if (process.getuid?.() !== 0) return
  const page = readFileSync(join(import.meta.dirname, '../../docs/proxy.md'), 'utf8')
  const [, lines] = /```sh\ncd [^\n]*\n([\s\S]*?)```/.exec(page) ?? []
  assert.ok(lines)
  execFileSync('bash', ['-euc', lines], { cwd: dataDir })
  chmodSync(join(dataDir, '..'), 0o711)
}

// The first half is on disk before the second half is sent.
async function streamUpload(side: Side, token: { authorization: string }, dataDir: string) {
  const { head, tail } = frameFile('large.bin')
  const length = head.length + large.length + tail.length
  const headers = { ...token, ...formType, 'content-length': String(length) }
  const request = begin(side, '/api/files/upload', { method: 'POST', headers })
  request.write(Buffer.concat([head, large.subarray(0, 24 * mebibyte)]))
  const drafts = join(dataDir, 'tmp')
  await until('a draft of 23 MiB', async () => {
    const sizes = readdirSync(drafts).map((name) => statSync(join(drafts, name)).size)
    return sizes.some((size) => size > 23 * mebibyte) || undefined
  })
  request.end(Buffer.concat([large.subarray(24 * mebibyte), tail]))
  const [response] = await once(request, 'response')
  assert.equal(response.statusCode, 201)
  const { sha256 } = JSON.parse((await buffer(response)).toString())
  assert.equal(sha256, createHash('sha256').update(large).digest('hex'))
}

async function sendTooMuch(side: Side, token: { authorization: string }) {
  const file = await upload(side, token, 'huge.bin', Buffer.alloc(65 * mebibyte))
  const json = await ask(side, '/api/versions/', {
    method: 'POST',
    headers: { ...token, 'content-type': 'application/json' },
    body: JSON.stringify({ version: '1', changelog: 'x'.repeat(2 * mebibyte) }),
  })
  for (const [answer, code] of [
    [file, 'file_too_large'],
    [json, 'body_too_large'],
  ] as const) {
    assert.equal(answer.status, 413)
    assert.equal(headerOf(answer, 'content-type'), 'application/problem+json')
    assert.equal(JSON.parse(answer.body.toString()).code, code)
  }
}

async function changeZone(side: Side) {
  const token = await logIn(side, password)
  const path = '/api/domains/alder-and-finch.com/dns/hosts'
  const zone = await ask(side, path, { headers: token })
  const etag = headerOf(zone, 'etag')
  const again = await ask(side, path, { headers: { ...token, 'if-none-match': etag } })
  const json = { ...token, 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'new', address: '192.0.2.7' })
  const wrong = { ...json, 'if-match': '"0"' }
  const refused = await ask(side, `${path}/A`, { method: 'POST', headers: wrong, body })
  const right = { ...json, 'if-match': etag }
  const added = await ask(side, `${path}/A`, { method: 'POST', headers: right, body })
  assert.deepEqual(
    [zone, again, refused, added].map(({ status }) => status),
    [200, 304, 412, 201],
  )
  assert.notEqual(headerOf(added, 'etag'), etag)
}

async function checkOffload({ files }: Services, side: Side, kind: Kind) {
  const forwarded = { 'x-forwarded-for': '192.0.2.1' }
  const asProxy = { headers: { ...forwarded, 'x-static-offload': kind } }
  const handed = await ask(direct(files.port), '/static/large.bin', asProxy)
  const place = headerOf(handed, 'x-accel-redirect')
  assert.match(place, /^\/blobs\/[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{64}$/)
  assert.equal(handed.body.length, 0)
  const whole = await ask(side, '/static/large.bin', { headers: { 'x-request-id': 'handed' } })
  assert.ok(whole.body.equals(large))
  // The proxy found the file and did not ask the service again.
  const lines = files.lines().filter((line) => line.includes('"request_id":"handed"'))
  assert.equal(lines.length, 1)
  assert.equal(headerOf(whole, 'x-accel-redirect'), '')
  const asked = [place, `${place}?x`, '/blobs/', '/blobs/../users.json', '/blobs/%2e%2e/users.json']
  for (const path of asked) {
    const { status, body } = await ask(side, path)
    assert.ok([400, 404].includes(status), `${path} is ${status}`)
    assert.ok(body.length < 2000)
  }
}

async function deleteWhileSent({ dataDir }: Services, side: Side, token: { authorization: string }) {
  const request = begin(side, '/static/large.bin')
  request.end()
  const [response] = await once(request, 'response')
  const first = once(response, 'data')
  const [chunk] = await first
  response.pause()
  // Not kept for the history either.
  const gone = await ask(side, '/api/files/delete', {
    method: 'POST',
    headers: { ...token, 'content-type': 'application/json' },
    body: JSON.stringify({ paths: ['large.bin'], forget: true }),
  })
  assert.equal(gone.status, 200)
  const digest = createHash('sha256').update(large).digest('hex')
  const shard = join(dataDir, 'blobs', digest.slice(0, 2), digest.slice(2, 4))
  await until('the content is removed', async () => !readdirSync(shard).includes(digest) || undefined)
  const whole = Buffer.concat([chunk, await buffer(response)])
  assert.ok(whole.equals(large))
  assert.equal((await ask(side, '/static/large.bin')).status, 404)
}

async function spoof({ files }: Services, side: Side) {
  const pretended = {
    'x-forwarded-for': '203.0.113.9',
    forwarded: 'for=203.0.113.9',
    'x-real-ip': '203.0.113.9',
  }
  const headers = { ...pretended, 'x-request-id': 'spoofed' }
  await ask(side, '/static/none', { headers, from: '127.0.0.5' })
  const line = await until('the line of the log', async () =>
    files.lines().find((text) => text.includes('"request_id":"spoofed"')),
  )
  assert.equal(JSON.parse(line).client, '127.0.0.5')

  const tries = async (from: string, at: number) => {
    const { status } = await ask(side, '/api/auth/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': `203.0.113.${at}` },
      body: JSON.stringify({ username: `nobody-${at}`, password: 'wrong' }),
      from,
    })
    return status
  }
  const statuses: number[] = []
  for (let at = 0; at < 31; at += 1) statuses.push(await tries('127.0.0.5', at))
  assert.deepEqual(statuses, [...Array(30).fill(401), 429])
  assert.equal(await tries('127.1.0.6', 99), 401)
}

async function usePrefix(zones: Side, store: Side) {
  const token = await logIn(store, password)
  const stored = await upload(store, token, 'a b/50%25 ü.txt', Buffer.from('by prefix'))
  const { url } = JSON.parse(stored.body.toString())
  assert.equal(url, 'https://example.com/files/static/a%20b/50%2525%20%C3%BC.txt')
  assert.equal(headerOf(stored, 'location'), '/files/api/files/a%20b/50%2525%20%C3%BC.txt')
  const got = await ask({ ...store, prefix: '' }, new URL(url).pathname)
  assert.equal(got.body.toString(), 'by prefix')
  for (const [path, status] of [
    ['/health', 200],
    ['/static/a%20b', 404],
    ['/docs', 200],
  ] as const) {
    assert.equal((await ask(store, path)).status, status, path)
  }
  const list = await ask(zones, '/api/domains?page_size=2', {
    headers: await logIn(zones, password),
  })
  assert.equal(JSON.parse(list.body.toString()).domains.length, 2)
}
