import createClient from 'openapi-fetch'
import { expect } from 'vitest'
import { runAccounts } from './accounts.ts'
// Generated from /openapi.json by test/e2e/generated-clients.test.ts.
import type { paths } from './generated/openapi-typescript/static-service.ts'
import { need, type Watch } from './watch.ts'
import { runWebhooks } from './webhooks.ts'

/** Calls every operation of the static service, with types generated from its OpenAPI document. */
export async function runScenario(baseUrl: string, password: string, watch: Watch) {
  const api = createClient<paths>({ baseUrl, pathSerializer })
  api.use(watch)
  const login = await api.POST('/api/auth/login', { body: { username: 'admin', password } })
  const { access_token } = need(login.data)
  api.use({
    onRequest: ({ request }) => request.headers.set('authorization', `Bearer ${access_token}`),
  })
  await api.GET('/api/auth/me')
  await runAccounts(baseUrl, access_token, watch)
  await runWebhooks(baseUrl, access_token, watch)
  const made = await api.POST('/api/tokens', {
    body: { name: 'nightly', expires_in: 3600, records: [{ name: 'home', types: ['A'] }] },
  })
  const token = need(made.data)
  await api.GET('/api/tokens', { params: { query: { owner: 'admin' } } })
  await api.DELETE('/api/tokens/{id}', { params: { path: { id: token.id } } })
  await api.GET('/health')

  const uploaded = await api.POST('/api/files/upload', {
    params: { header: { 'if-none-match': '*' } },
    body: { file: new Blob(['Hello, files\n']), path: 'notes/' },
    bodySerializer: ({ file, path }) => formOf({ file: [file] }, ['hello.txt'], path),
  })
  const file = need(uploaded.data)
  const again = await api.POST('/api/files/upload', {
    params: { header: { 'if-none-match': '*' } },
    body: { file: new Blob(['Another']), path: 'notes/hello.txt' },
    bodySerializer: ({ file, path }) => formOf({ file: [file] }, ['x.txt'], path),
  })
  await api.POST('/api/files/upload', {
    body: { file: new Blob(['Hello, files\n']), path: file.path },
    bodySerializer: ({ file, path }) => formOf({ file: [file] }, ['x.txt'], path),
  })
  const batch = await api.POST('/api/files/upload/batch', {
    body: { files: [new Blob(['<h1>Hi</h1>']), new Blob(['h1 { color: teal }'])], path: 'site' },
    bodySerializer: ({ files, path }) => formOf({ files }, ['index.html', 'style.css'], path),
  })

  const list = await api.GET('/api/files', { params: { query: { page_size: 2, sort: '-size' } } })
  const found = await api.GET('/api/files', { params: { query: { search: 'HELLO' } } })
  await api.GET('/api/files/categories')
  const tree = await api.GET('/api/files/tree', { params: { query: { depth: 2 } } })
  const atFile = { path: { path: file.path } }
  const described = await api.GET('/api/files/{path}', { params: atFile })
  const content = await api.GET('/static/{path}', { params: atFile, parseAs: 'text' })
  const part = await api.GET('/static/{path}', {
    params: { ...atFile, header: { range: 'bytes=0-4' } },
    parseAs: 'text',
  })

  await api.PUT('/api/files/{path}', {
    params: { path: { path: 'notes/raw.txt' } },
    body: new Blob(['Hello again\n']),
    bodySerializer: (content) => content,
    headers: { 'content-type': 'application/octet-stream' },
  })
  const tus = { 'tus-resumable': '1.0.0' }
  const creation = { ...tus, 'upload-length': '3', 'upload-metadata': `path ${btoa('big.bin')}` }
  const created = await api.POST('/api/uploads', { params: { header: creation } })
  const upload = need(created.response.headers.get('location')?.split('/').at(-1))
  const ofUpload = { path: { id: upload }, header: tus }
  const appended = await api.PATCH('/api/uploads/{id}', {
    params: { ...ofUpload, header: { ...tus, 'upload-offset': '0' } },
    body: new Blob(['ab']),
    bodySerializer: (content) => content,
    headers: { 'content-type': 'application/offset+octet-stream' },
  })
  await api.DELETE('/api/uploads/{id}', { params: ofUpload })

  const inSite = await api.GET('/api/files', {
    params: { query: { prefix: 'site', recursive: false } },
  })

  const moved = await api.POST('/api/files/move', {
    body: { from: 'notes/raw.txt', to: 'notes/there.txt' },
  })
  const together = await api.POST('/api/files/move/batch', {
    body: { moves: [{ from: 'notes/there.txt', to: 'notes/moved.txt' }] },
  })

  const archive = await api.GET('/api/trees/{path}', {
    params: { path: { path: 'site/' } },
    parseAs: 'arrayBuffer',
  })

  await api.GET('/api/trees/{path}', {
    params: { path: { path: 'site/' }, header: { accept: 'application/json' } },
  })

  const atFolder = { params: { path: { path: 'drafts/' } } }
  const rule = await api.PUT('/api/access/{path}', { ...atFolder, body: { public: false } })
  const rules = await api.GET('/api/access')
  const lifted = await api.DELETE('/api/access/{path}', atFolder)
  const sent = await api.PUT('/api/contents/{sha256}', {
    params: { path: { sha256: file.sha256 } },
    body: new Blob(['Hello, files\n']),
    bodySerializer: (content) => content,
  })
  const copied = await api.PUT('/api/trees/{path}', {
    params: { path: { path: 'copy/' }, header: { 'if-none-match': '*' } },
    body: new Blob(['{ "from": "site/" }']),
    bodySerializer: (body) => body,
  })
  await api.POST('/api/files/delete', { body: { prefix: 'copy/' } })

  const link = await api.POST('/api/links', { body: { path: file.path, downloads: 2 } })
  const links = await api.GET('/api/links', { params: { query: { path: file.path } } })
  const secret = need(link.data).url.slice('/l/'.length)
  const shared = await api.GET('/l/{token}', {
    params: { path: { token: secret } },
    parseAs: 'text',
  })
  const below = await api.POST('/api/links', { body: { path: 'notes/' } })
  const sharedBelow = await api.GET('/l/{token}/{path}', {
    params: { path: { token: need(below.data).url.slice('/l/'.length), path: 'hello.txt' } },
    parseAs: 'text',
  })
  const revoked = await api.DELETE('/api/links/{id}', {
    params: { path: { id: need(link.data).id } },
  })

  const version = await api.POST('/api/versions', { body: { version: '1.4.0', changelog: 'New' } })
  await api.GET('/api/versions/{version}', { params: { path: { version: '1.4.0' } } })
  await api.GET('/api/versions', { params: { query: { page: 1 } } })
  const current = await api.GET('/api/versions/current')
  const stats = await api.GET('/api/versions/stats')

  const bulk = await api.POST('/api/files/delete', { body: { prefix: 'site/' } })
  const etag = need(described.response.headers.get('etag'))
  const deleted = await api.DELETE('/api/files/{path}', {
    params: { ...atFile, header: { 'if-match': etag } },
  })
  const { changes = [] } = (await api.GET('/api/changes', { params: { query: { action: 'move' } } })).data ?? {}
  const { id = 0 } = changes[0] ?? {}
  const events = await api.GET('/api/events')
  expect(events.data?.events.map(({ type }) => type)).toContain('files.changed')
  const change = await api.GET('/api/changes/{id}', { params: { path: { id } } })
  const history = await api.GET('/api/history', { params: { query: { path: 'notes/moved.txt' } } })
  const past = await api.GET('/api/history/content', {
    params: { query: { path: 'notes/moved.txt', change: id } },
    parseAs: 'text',
  })
  const reverted = await api.POST('/api/changes/{id}/revert', { params: { path: { id } } })
  const of140 = { params: { path: { version: '1.4.0' } } }
  const shown = await api.GET('/api/versions/{version}/files', of140)
  const compared = await api.GET('/api/versions/{version}/diff', of140)
  const gone = await api.GET('/api/files/{path}', { params: atFile })

  expect(rules.data).toEqual({ rules: [rule.data] })
  expect(lifted.response.status).toBe(204)
  expect(appended.response.headers.get('upload-offset')).toBe('2')
  expect(links.data?.links).toMatchObject([{ id: link.data?.id, downloads_left: 2 }])
  expect([shared.data, sharedBelow.data]).toEqual(['Hello, files\n', 'Hello, files\n'])
  expect(revoked.response.status).toBe(204)
  expect(archive.response.headers.get('content-type')).toBe('application/x-tar')
  expect(sent.response.status).toBe(204)
  expect(copied.data).toMatchObject({ files: 2, added: 2, change: { action: 'deploy' } })
  expect(file).toMatchObject({ path: 'notes/hello.txt', size: 13 })
  expect(change.data).toMatchObject({ files: [{ before: null }, { after: null }] })
  expect(history.data?.history).toMatchObject([{ action: 'move', is_current: true }])
  expect(reverted.data).toMatchObject({ action: 'revert', added: 1, removed: 1 })
  expect(past.data).toBe('Hello again\n')
  expect(again.error).toMatchObject({ status: 412, code: 'precondition_failed' })
  expect(batch.data?.files.map((each) => each.path)).toEqual(['site/index.html', 'site/style.css'])
  expect(list.data?.pagination).toMatchObject({ total_items: 3, total_pages: 2 })
  expect(found.data?.files).toMatchObject([{ path: file.path }])
  expect(tree.data?.tree).toMatchObject({ file_count: 3 })
  expect([content.data, part.data]).toEqual(['Hello, files\n', 'Hello'])
  expect(current.data).toEqual(version.data)
  expect(stats.data).toMatchObject({ total_files: 4, versions: 1 })
  expect(shown.data?.files.length).toBeGreaterThan(0)
  expect(compared.data?.added.length).toBeGreaterThan(0)
  const counts = [moved.data?.files_moved, together.data?.files_moved, bulk.data?.files_deleted]
  expect(counts).toEqual([1, 1, 2])
  expect(inSite.data?.pagination).toMatchObject({ total_items: 2 })
  expect(deleted.response.status).toBe(204)
  expect(gone.error).toMatchObject({ status: 404, code: 'file_not_found' })
}

// OpenAPI has no path parameter with slashes, and `%2F` is not a path separator here.
const pathSerializer = (pathname: string, parameters: Record<string, unknown>) =>
  pathname.replaceAll(/\{(\w+)\}/g, (_match, name: string) =>
    String(parameters[name]).split('/').map(encodeURIComponent).join('/'),
  )

function formOf(parts: Record<string, Blob[]>, names: string[], path = ''): FormData {
  const form = new FormData()
  form.append('path', path)
  for (const [part, contents] of Object.entries(parts)) {
    for (const [at, content] of contents.entries()) form.append(part, content, names[at] ?? '')
  }
  return form
}
