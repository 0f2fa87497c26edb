import assert from 'node:assert/strict'
import type { Call, Client } from './client.ts'

const zone = '/api/domains/alder-and-finch.com/dns'
const page = '<h1>Hi</h1>'
const text = 'Hello, files\n'.repeat(200)

/** Reads, adds, replaces and restores records; asserts each response. */
export async function useDomains(client: Client) {
  const list = await client.json('/api/domains?page_size=3')
  assert.equal(itemsOf(list.domains).length, 3)
  const before = await client.json(`${zone}/hosts`)

  const added = await client.json(`${zone}/hosts/A`, {
    json: { name: 'hello', address: '192.0.2.10' },
    status: 201,
  })
  const grown = await client.json(`${zone}/hosts`)
  assert.equal(itemsOf(grown.hosts).length, itemsOf(before.hosts).length + 1)
  const taken = { json: { name: 'hello', address: '192.0.2.10' }, status: 409 }
  await client.call(`${zone}/hosts/A`, taken)

  const only = { hosts: [{ name: '@', type: 'A', address: '192.0.2.1' }] }
  const replaced = await client.json(`${zone}/hosts`, { method: 'PUT', json: only })
  assert.equal(itemsOf(replaced.hosts).length, 1)
  const { history } = await client.json(`${zone}/history`)
  const [last] = itemsOf(history)
  const restored = await client.json(`${zone}/history/${last?.id}/restore`, { method: 'POST' })
  assert.deepEqual(restored.hosts, grown.hosts)
  assert.ok(itemsOf(restored.hosts).some(({ id }) => id === added.id))
}

/** The visible state of the domain service, without times. */
export async function seeDomains(client: Client) {
  const { hosts } = await client.json(`${zone}/hosts`, { headers: { 'cache-control': 'no-cache' } })
  const { history } = await client.json(`${zone}/history`)
  return { hosts, history }
}

/** Uploads, lists, finds and deletes files; asserts each response. */
export async function useFiles(client: Client) {
  const first = await client.call('/api/files/upload', upload('file', 'notes/', { 'hello.txt': text }))
  assert.equal(first.headers.get('location'), '/api/files/notes/hello.txt')
  const pages = { 'index.html': page, 'style.css': 'h1 { color: teal }' }
  await client.call('/api/files/upload/batch', upload('files', 'site', pages))
  await client.call('/api/files/upload', upload('file', 'gone/', { 'soon.bin': 'x' }))

  const { pagination } = await client.json('/api/files/?page_size=2')
  assert.deepEqual(pagination, { page: 1, page_size: 2, total_items: 4, total_pages: 2 })
  const found = await client.json('/api/files/?search=HELLO')
  assert.deepEqual(
    itemsOf(found.files).map(({ path }) => path),
    ['notes/hello.txt'],
  )
  const { tree } = await client.json('/api/files/tree')
  assert.ok(tree && typeof tree === 'object' && 'file_count' in tree)
  assert.equal(tree.file_count, 4)
  const { categories } = await client.json('/api/files/categories')
  assert.ok(itemsOf(categories).length >= 2)

  await client.call('/api/files/gone/soon.bin', { method: 'DELETE', status: 204 })
  await client.call('/static/gone/soon.bin', { status: 404 })
  const version = { version: '1.0.0', changelog: 'The first' }
  await client.call('/api/versions/', { json: version, status: 201 })
}

/** The visible state of the static service; public routes are read without a token. */
export async function seeFiles(client: Client) {
  // A compressed form has its own ETag and may not exist yet.
  const plain = { 'accept-encoding': 'identity' }
  const whole = await client.call('/static/notes/hello.txt', { headers: plain })
  const etag = whole.headers.get('etag') ?? ''
  assert.equal(await whole.text(), text)
  const range = { headers: { range: 'bytes=0-4' }, status: 206 }
  const part = await client.call('/static/notes/hello.txt', range)
  assert.equal(await part.text(), 'Hello')
  const known = { headers: { ...plain, 'if-none-match': etag }, status: 304 }
  await client.call('/static/notes/hello.txt', known)
  assert.equal(await (await client.call('/static/site/index.html')).text(), page)
  const { files, pagination } = await client.json('/api/files/')
  const current = await client.json('/api/versions/current')
  return { files, pagination, current, stats: await client.json('/api/versions/stats') }
}

function upload(field: string, path: string, files: Record<string, string>): Call {
  const form = new FormData()
  form.set('path', path)
  for (const [name, content] of Object.entries(files)) form.append(field, new Blob([content]), name)
  return { form, status: 201 }
}

function itemsOf(list: unknown): Record<string, unknown>[] {
  assert.ok(Array.isArray(list))
  return list
}
