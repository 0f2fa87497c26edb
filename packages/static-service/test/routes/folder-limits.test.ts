import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limitToFolders } from '../../src/routes/callers.ts'
import { type Part, type Service, start, writeForm } from '../support/start.ts'
import { digestOf } from '../support/stored-contents.ts'

let service: Service
const tokens = new Map<string, string>()

const stored = {
  'docs/a.txt': 'a',
  'docs/sub/b.html': '<p>b',
  'docsx/a.txt': 'near',
  'site/c.txt': 'a',
  'secret/d.txt': 'secret',
  'e.txt': 'root',
}

beforeAll(async () => {
  service = await start()
  for (const [path, content] of Object.entries(stored)) await service.put(path, content)
  for (const [name, folders] of Object.entries({
    docs: ['docs/'],
    both: ['docs/', 'site/'],
    missing: ['missing/'],
  })) {
    const json = { name, role: 'editor', folders }
    tokens.set(name, String((await service.call('POST', '/api/tokens', { json })).body.token))
  }
})

afterAll(() => service[Symbol.asyncDispose]())

const multipart = 'multipart/form-data; boundary=boundary-of-tests'

interface Options {
  json?: unknown
  body?: string
  form?: Part[]
  headers?: Record<string, string>
}

async function as(name: string, method: string, path: string, options: Options = {}) {
  const { json, body: sent, form, headers } = options
  const type = form && { 'content-type': multipart }
  const { status, body } = await service.call(method, path, {
    ...(json !== undefined && { json }),
    ...(sent !== undefined && { body: sent }),
    ...(form && { body: writeForm(form) }),
    headers: { ...type, ...headers, authorization: `Bearer ${tokens.get(name)}` },
  })
  const { request_id: _, ...rest } = body
  return { status, body: rest }
}

const file = (filename: string): Part => ({ name: 'file', content: 'x', filename })
const files = (filename: string): Part => ({ ...file(filename), name: 'files' })
const field = (content: string): Part => ({ name: 'path', content })
const tag = { 'if-match': '"x"' }

describe('outside of its folders a limited caller finds nothing', () => {
  const at = (path: string): [string, string, Options?][] => [
    ['GET', `/api/files/${path}`],
    ['HEAD', `/api/files/${path}`],
    ['GET', `/api/files/${path}`, { headers: { 'if-none-match': '*' } }],
    ['DELETE', `/api/files/${path}`],
    ['DELETE', `/api/files/${path}`, { headers: tag }],
    ['DELETE', `/api/files/${path}?unknown=1`],
    ['PUT', `/api/files/${path}`, { headers: tag }],
    ['PUT', `/api/files/${path}`, { headers: { 'content-range': 'bytes 0-1/2' } }],
    ['PUT', `/api/files/${path}`, { headers: { 'content-length': '99999999999' } }],
    ['PUT', `/api/files/${path}/below`],
    ['POST', '/api/files/upload', { form: [field(path), file('x')], headers: tag }],
    ['POST', '/api/files/upload', { form: [file(path)], headers: tag }],
    ['POST', '/api/files/upload', { form: [file('x'), field(path)], headers: tag }],
    ['POST', '/api/files/upload/batch', { form: [field(path), files('x')] }],
    ['POST', '/api/files/upload/batch', { form: [files('docs/y'), files(path)], headers: tag }],
    ['POST', '/api/files/move', { json: { from: path, to: 'docs/new' } }],
    ['POST', '/api/files/move', { json: { from: 'docs/a.txt', to: path } }],
    ['POST', '/api/files/move', { json: { from: 'docs/none', to: path, overwrite: true } }],
    ['POST', '/api/files/move', { json: { from: `${path}/`, to: 'docs/new/' } }],
    ['POST', '/api/files/move', { json: { from: 'docs/', to: `${path}/` } }],
    ['POST', '/api/files/move/batch', { json: { moves: [{ from: 'docs/a.txt', to: path }] } }],
    ['POST', '/api/files/move/batch', { json: { moves: [{ from: `${path}/`, to: 'docs/x/' }] } }],
    ['POST', '/api/files/delete', { json: { paths: ['docs/a.txt', path] } }],
    ['POST', '/api/files/delete', { json: { paths: [path, 'docs/none'] } }],
    ['POST', '/api/files/delete', { json: { prefix: path } }],
    ['GET', `/api/files?prefix=${path}`],
    ['GET', `/api/files?prefix=${path}&page=0`],
    ['GET', `/api/files/tree?prefix=${path}`],
    ['GET', `/api/files/categories?prefix=${path}`],
    ['GET', `/api/versions/stats?prefix=${path}`],
    ['GET', `/api/history?path=${path}`],
    ['GET', `/api/history/content?path=${path}&change=1`],
    ['GET', `/api/versions/1/files?prefix=${path}`],
    ['GET', `/api/versions/1/diff?prefix=${path}`],
    ['GET', `/api/trees/${path}/`],
    ['PUT', '/api/trees/docs/new/', { json: { from: `${path}/` } }],
  ]
  // A file, one directly above, a directory that begins alike, and what is not there.
  const paths = ['secret/d.txt', 'e.txt', 'docsx', 'none/none.txt']

  for (const [index, call] of at('PATH').entries()) {
    test(`${call[0]} ${call[1]} ${JSON.stringify(call[2] ?? {})}`, async () => {
      for (const path of paths) {
        const [method, url, options] = at(path)[index] ?? call

        const answer = await as('docs', method, url, options)

        expect(answer.status, path).toBe(404)
        const isDirectory = /prefix|\/"/.test(url + JSON.stringify(options?.json ?? ''))
        if (method !== 'HEAD') {
          expect(answer.body.code).toBe(isDirectory ? 'directory_not_found' : 'file_not_found')
          expect(String(answer.body.detail).replace(/ at .*/, '')).toBe(isDirectory ? 'No directory' : 'No file')
        }
      }
    })
  }

  test('nothing of it has changed', async () => {
    const { body } = await service.call('GET', '/api/files')

    expect(body.files?.map(({ path }) => path)).toEqual(Object.keys(stored).sort())
  })
})

test('a directory outside is named as it would be stored, however it was written', async () => {
  for (const query of ['files?prefix=secret', 'files?prefix=/secret/', 'changes?prefix=secret/'])
    expect((await as('docs', 'GET', `/api/${query}`)).body, query).toMatchObject({
      detail: 'No directory at secret',
      paths: ['secret/'],
    })
  const all = await as('docs', 'POST', '/api/files/delete', { json: { prefix: '/' } })
  expect(all.body).toMatchObject({ detail: 'No directory at /', paths: ['/'] })
})

type Described = Record<string, Record<string, { responses: Record<number, unknown> }>>

test.for([
  ['get', '/api/files', 'directory_not_found'],
  ['get', '/api/files/tree', 'directory_not_found'],
  ['get', '/api/files/categories', 'directory_not_found'],
  ['get', '/api/versions/stats', 'directory_not_found'],
  ['get', '/api/changes', 'directory_not_found'],
  ['get', '/api/versions/{version}/files', 'directory_not_found'],
  ['get', '/api/versions/{version}/diff', 'directory_not_found'],
  ['post', '/api/files/upload', 'file_not_found'],
  ['post', '/api/files/upload/batch', 'file_not_found'],
] as const)('the description of %s %s has the 404 of what is outside', async ([method, path, code]) => {
  const { body } = await service.call('GET', '/openapi.json')
  const operations = (body.paths as unknown as Described)[path]

  expect(JSON.stringify(operations?.[method]?.responses[404] ?? null)).toContain(code)
})

test('a route that does not say how it holds callers to their folders stops the boot', () => {
  const app = fastify()
  limitToFolders(app as never)

  expect(() => app.get('/x', { config: { access: 'viewer' } }, async () => '')).toThrow('folders')
})

test('lists, searches, trees, counts and statistics cover the only folder', async () => {
  const paths = ['docs/a.txt', 'docs/sub/b.html']
  const read = async (path: string) => (await as('docs', 'GET', path)).body
  const listed = async (path: string) => (await read(path)).files?.map((each) => each.path)

  expect(await listed('/api/files')).toEqual(paths)
  expect(await listed('/api/files/?prefix=/')).toEqual(paths)
  expect(await listed('/api/files?search=a')).toEqual(['docs/a.txt'])
  expect(await listed('/api/files?category=document&sort=-size')).toEqual(['docs/a.txt'])
  expect(await listed('/api/files?prefix=docs/sub/')).toEqual(['docs/sub/b.html'])
  expect(await listed('/api/files?prefix=docs/none')).toEqual([])
  expect((await read('/api/files')).pagination?.total_items).toBe(2)
  expect((await read('/api/files/tree')).tree).toMatchObject({ path: 'docs', file_count: 2 })
  expect((await read('/api/files/categories/')).categories).toEqual([
    { category: 'code', file_count: 1, total_size: 4 },
    { category: 'document', file_count: 1, total_size: 1 },
  ])
  expect(await read('/api/versions/stats')).toMatchObject({
    total_files: 2,
    total_size: 5,
    stored_size: 5,
    categories: [{ category: 'code' }, { category: 'document' }],
  })
  expect(await as('missing', 'GET', '/api/files')).toMatchObject({ body: { files: [] } })
})

test.each(['/api/files', '/api/files/tree', '/api/files/categories', '/api/versions/stats'])(
  'with several folders %s needs one of them as its prefix',
  async (url) => {
    const refused = [url, `${url}?prefix=/`, `${url}?prefix=secret`, `${url}?prefix=doc`]
    for (const path of refused) {
      const { status, body } = await as('both', 'GET', path)

      expect([status, body.code]).toEqual([400, 'validation_failed'])
      expect(body.errors).toEqual([
        { path: '/query/prefix', message: 'must be inside one of your folders: docs/, site/' },
      ])
    }
    expect((await as('both', 'GET', `${url}?prefix=site`)).status).toBe(200)
    expect((await as('both', 'GET', `${url}?prefix=docs/sub/`)).status).toBe(200)
  },
)

test('changes are seen and reverted that changed nothing outside', async () => {
  const change = async () => {
    const { body } = await service.call('GET', '/api/changes?page_size=1')
    return (body.changes as { id: number }[])[0]?.id
  }
  await service.put('docs/own.txt', 'own')
  const own = await change()
  const form = [files('docs/both.txt'), files('secret/both.txt')]
  const sent = { body: writeForm(form), headers: { 'content-type': multipart } }
  await service.call('POST', '/api/files/upload/batch', sent)
  const both = await change()
  const read = (id: unknown) => as('docs', 'GET', `/api/changes/${id}`)

  const { body } = await as('docs', 'GET', '/api/changes?page_size=200')
  const paths = (body.changes as { paths: string[] }[]).flatMap((each) => each.paths)
  expect(new Set(paths)).toEqual(new Set(['docs/own.txt', 'docs/a.txt', 'docs/sub/b.html']))
  expect((await as('docs', 'GET', '/api/changes?prefix=secret')).status).toBe(404)
  expect([(await read(own)).status, (await read(both)).status]).toEqual([200, 404])
  expect((await read(both)).body.code).toBe((await read(999_999)).body.code)
  const revert = (id: unknown) => as('docs', 'POST', `/api/changes/${id}/revert`)
  expect([(await revert(both)).status, (await revert(own)).status]).toEqual([404, 200])
  await service.call('POST', `/api/changes/${both}/revert`)
})

test('inside of its folders a limited editor does everything', async () => {
  const answers = [
    await as('both', 'PUT', '/api/files/docs/new/f.txt'),
    await as('both', 'POST', '/api/files/upload', { form: [field('site/g.txt'), file('x')] }),
    await as('both', 'POST', '/api/files/move', { json: { from: 'docs/new/', to: 'site/new/' } }),
    await as('both', 'GET', '/api/files/site/new/f.txt'),
    await as('both', 'POST', '/api/files/delete', { json: { paths: ['site/g.txt'] } }),
    await as('both', 'POST', '/api/files/delete', { json: { prefix: 'site/new/' } }),
    await as('both', 'GET', '/api/versions'),
  ]

  expect(answers.map(({ status }) => status)).toEqual([201, 201, 200, 200, 200, 200, 200])
})

test('the prefix limits counts and statistics of callers without folders, too', async () => {
  const { body: counts } = await service.call('GET', '/api/files/categories?prefix=secret')
  const { body: stats } = await service.call('GET', '/api/versions/stats?prefix=none/')

  expect(counts.categories).toEqual([{ category: 'document', file_count: 1, total_size: 6 }])
  expect(stats).toMatchObject({ total_files: 0, total_size: 0, stored_size: 0, categories: [] })
  expect((await service.call('GET', '/api/files/categories?prefix=a//b')).status).toBe(400)
})

test('a limited user logs in, makes API tokens with its folders at most, and logs out', async () => {
  const password = 'words of a limited user'
  const user = { username: 'lena', role: 'viewer', folders: ['docs/'], password }
  await service.call('POST', '/api/users', { json: user })
  const json = { username: 'lena', password }
  const login = await service.call('POST', '/api/auth/login', { json, user: 'nobody' })
  const headers = { authorization: `Bearer ${login.body.access_token}` }
  const send = (method: string, path: string, body?: unknown) =>
    service.call(method, path, { headers, ...(body !== undefined && { json: body }) })

  const me = await send('GET', '/api/auth/me')
  const made = await send('POST', '/api/tokens', { name: 'of lena' })
  const listed = await send('GET', '/api/tokens')
  const revoked = await send('DELETE', `/api/tokens/${made.body.id}`)
  const outside = await send('POST', '/api/tokens', { name: 'more', folders: ['site/'] })

  expect(me.body).toMatchObject({ user: { username: 'lena', folders: ['docs/'] } })
  expect([made, listed, revoked, outside].map(({ status }) => status)).toEqual([201, 200, 204, 403])
  expect((await send('POST', '/api/auth/logout')).status).toBe(204)
  expect((await send('GET', '/api/auth/me')).status).toBe(401)
})

// Last: its deploys are changes that others would list.
test.each([
  ['paths', { paths: ['docs/guess/f'] }],
  ['a directory', { prefix: 'docs/guess/' }],
])('what a limited caller deletes by %s does not tell whether files outside have that content', async (_, json) => {
  const bytesFreed = async (content: string) => {
    await as('docs', 'PUT', '/api/files/docs/guess/f', { body: content })
    return (await as('docs', 'POST', '/api/files/delete', { json })).body
  }

  expect([await bytesFreed('secret'), await bytesFreed('no file')]).toEqual([
    { files_deleted: 1, bytes_freed: 6 },
    { files_deleted: 1, bytes_freed: 7 },
  ])
})

test('a limited caller names contents that a file in its folders has or had, or that it has sent', async () => {
  const secret = digestOf('secret')
  const deploy = (sha256: string) =>
    as('docs', 'PUT', '/api/trees/docs/sent/?mode=merge', { json: { files: { f: { sha256 } } } })
  const send = async () => (await as('docs', 'PUT', `/api/contents/${secret}`, { body: 'secret' })).status
  // Its owner has sent it, and files elsewhere have it.
  await service.call('PUT', `/api/contents/${secret}`, { body: 'secret' })

  expect(await deploy(secret)).toMatchObject({ status: 409, body: { missing: [secret] } })
  expect((await deploy(digestOf('a'))).status).toBe(200)
  // It does not learn that it was stored.
  expect([await send(), await send()]).toEqual([201, 204])
  expect((await deploy(secret)).status).toBe(200)
  await as('docs', 'DELETE', '/api/files/docs/sent/f')
})
