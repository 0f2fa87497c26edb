import { expect, test } from 'vitest'
import { emptyService } from '../support/empty-service.ts'
import type { Service } from '../support/start.ts'

const putAll = async (service: Service, paths: string[]) => {
  for (const path of paths) await service.put(path)
}

const paths = async (service: Service) => (await service.call('GET', '/api/files')).body.files?.map(({ path }) => path)

const move = (service: Service, json: unknown, user = 'admin') =>
  service.call('POST', '/api/files/move', { json, user })

const remove = (service: Service, json: unknown, user = 'admin') =>
  service.call('POST', '/api/files/delete', { json, user })

const content = async (service: Service, path: string) => {
  const { status, bytes } = await service.call('GET', `/static/${path}`)
  return status === 200 ? bytes.toString() : status
}

test('a moved file is at its new path only, with its content and creation time', async () => {
  await using service = await emptyService()
  const { body: before } = await service.put('a/b.txt', 'content')
  await content(service, 'a/b.txt')

  const moved = await move(service, { from: 'a/b.txt', to: '/c/d.txt' })

  expect([moved.status, moved.body]).toEqual([200, { files_moved: 1 }])
  expect([await content(service, 'a/b.txt'), await content(service, 'c/d.txt')]).toEqual([404, 'content'])
  const { body } = await service.call('GET', '/api/files/c/d.txt')
  expect(body).toMatchObject({ name: 'd.txt', created_at: before.created_at, uploaded_by: 'admin' })
  expect(Date.parse(String(body.updated_at))).toBeGreaterThanOrEqual(Date.parse(String(before.updated_at)))
  expect((await service.call('GET', '/api/files?search=b.txt')).body.files).toEqual([])
  expect((await service.call('GET', '/api/files/tree?prefix=a')).status).toBe(404)
})

test.each([
  ['a.txt', 'plain text', 'a.html', 'text/html', 'code'],
  ['a.html', 'plain text', 'README', 'text/plain', 'document'],
  ['a.txt', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'logo', 'image/png', 'image'],
])('%s (%j) moved to %s is %s', async (from, text, to, type, category) => {
  await using service = await emptyService()
  await service.put(from, Buffer.from(text, 'latin1'))

  await move(service, { from, to })

  const { body } = await service.call('GET', `/api/files/${to}`)
  expect([body.content_type, body.category]).toEqual([type, category])
  const { body: counts } = await service.call('GET', '/api/files/categories')
  expect(counts.categories?.map((each) => [each.category, each.file_count])).toEqual([[category, 1]])
})

test('a moved directory takes everything below it along and merges into the target', async () => {
  await using service = await emptyService()
  await putAll(service, ['a/1', 'a/b/2', 'a/b/c/3', 'ab/4', 'z/5'])

  const { body } = await move(service, { from: 'a/', to: 'z/y/' })

  expect(body).toEqual({ files_moved: 3 })
  expect(await paths(service)).toEqual(['ab/4', 'z/5', 'z/y/1', 'z/y/b/2', 'z/y/b/c/3'])
  expect(await content(service, 'z/y/b/c/3')).toBe('a/b/c/3')
  expect(await content(service, 'a/b/2')).toBe(404)
  const { body: listed } = await service.call('GET', '/api/files/tree?prefix=z')
  expect(listed.tree).toMatchObject({ file_count: 4 })
})

test.each([
  ['up into the directory above', 'a/b/', 'a/', ['a/2', 'a/c/3', 'a/x']],
  ['up to the root', 'a/', '/', ['b/2', 'b/c/3', 'x']],
  ['onto itself', 'a/b/', '/a/b/', ['a/b/2', 'a/b/c/3', 'a/x']],
])('a directory can move %s', async (_what, from, to, expected) => {
  await using service = await emptyService()
  await putAll(service, ['a/b/2', 'a/b/c/3', 'a/x'])

  const { status } = await move(service, { from, to })

  expect([status, await paths(service)]).toEqual([200, expected])
})

test('a file can move below its own path, and onto itself', async () => {
  await using service = await emptyService()
  await service.put('a')

  const same = await move(service, { from: 'a', to: 'a' })
  const below = await move(service, { from: 'a', to: 'a/b' })

  expect([same.body, below.body]).toEqual([{ files_moved: 0 }, { files_moved: 1 }])
  expect(await paths(service)).toEqual(['a/b'])
})

test.each([
  ['onto a file', { from: 'a/1', to: 'z' }, 409, 'path_conflict'],
  ['onto a directory', { from: 'z', to: 'a', overwrite: true }, 409, 'path_conflict'],
  ['below a file', { from: 'a/1', to: 'z/1', overwrite: true }, 409, 'path_conflict'],
  ['a directory onto a file', { from: 'a/', to: 'z/' }, 409, 'path_conflict'],
  ['onto one of several files', { from: 'a/', to: 'c/' }, 409, 'path_conflict'],
  ['a directory into itself', { from: 'a/', to: 'a/new/' }, 409, 'path_conflict'],
  ['the root', { from: '/', to: 'a/new/' }, 409, 'path_conflict'],
  ['a missing file', { from: 'b', to: 'x' }, 404, 'file_not_found'],
  ['a directory as a file', { from: 'a', to: 'x' }, 404, 'file_not_found'],
  ['a missing directory', { from: 'b/', to: 'x/' }, 404, 'directory_not_found'],
  ['a file as a directory', { from: 'z/', to: 'x/' }, 404, 'directory_not_found'],
  ['to an invalid path', { from: 'z', to: '../x' }, 400, 'invalid_path'],
  ['to a reserved path', { from: 'z', to: 'tree' }, 400, 'reserved_path'],
  ['a file to a directory', { from: 'z', to: 'x/' }, 400, 'validation_failed'],
  ['a directory to a file', { from: 'a/', to: 'x' }, 400, 'validation_failed'],
  ['without a target', { from: 'z' }, 400, 'validation_failed'],
  ['with an unknown field', { from: 'z', to: 'x', force: true }, 400, 'validation_failed'],
  [
    'a directory so deep that a path grows too long',
    { from: 'a/', to: [255, 255, 255, 254, 0].map((length) => 'd'.repeat(length)).join('/') },
    400,
    'invalid_path',
  ],
  ['a directory whose child would be reserved', { from: 'r/', to: '/' }, 400, 'reserved_path'],
])('a move %s is refused and changes nothing', async (_what, json, status, code) => {
  await using service = await emptyService()
  const all = ['a/1', 'a/22', 'c/22', 'r/0', 'r/tree/x', 'z']
  await putAll(service, all)

  const answer = await move(service, json)

  expect([answer.status, answer.body.code]).toEqual([status, code])
  expect(await paths(service)).toEqual(all)
  expect((await service.call('GET', '/api/versions/stats')).body).toMatchObject({ total_files: 6 })
})

test('a missing field of a move is named as missing', async () => {
  await using service = await emptyService()

  const { body } = await move(service, { overwrite: 'yes' })

  expect(body.errors).toEqual([
    { path: '/from', message: 'is missing' },
    { path: '/to', message: 'is missing' },
    { path: '/overwrite', message: 'must be true or false' },
  ])
})

test('a move with overwrite replaces files and frees their contents', async () => {
  await using service = await emptyService()
  await service.put('a/1', 'new')
  await service.put('b/1', 'old')
  await content(service, 'b/1')

  const { body } = await move(service, { from: 'a/', to: 'b/', overwrite: true })

  expect([body, await paths(service)]).toEqual([{ files_moved: 1 }, ['b/1']])
  expect(await content(service, 'b/1')).toBe('new')
  expect((await service.call('GET', '/api/versions/stats')).body).toMatchObject({ stored_size: 3 })
})

const moveBatch = (service: Service, moves: unknown, user = 'admin') =>
  service.call('POST', '/api/files/move/batch', { json: { moves }, user })

test('files and directories are moved together as one change; what exists is named', async () => {
  await using service = await emptyService()
  await putAll(service, ['a.txt', 'b.txt', 'c.txt', 'd/1', 'd/e/2', 'to/b.txt', 'to/d/1'])
  const moves = ['a.txt', 'b.txt', 'd/'].map((from) => ({ from, to: `to/${from}` }))

  const refused = await moveBatch(service, moves)
  const [a, b, d] = moves
  const moved = await moveBatch(service, [
    a,
    { ...b, to: 'to/b.html' },
    { ...d, overwrite: true },
    { from: 'c.txt', to: 'a.txt' },
  ])

  expect([refused.status, refused.body.code]).toEqual([409, 'path_conflict'])
  expect(refused.body.paths).toEqual(['to/b.txt', 'to/d/1'])
  expect(moved.body).toEqual({ files_moved: 5 })
  expect(await paths(service)).toEqual(['a.txt', 'to/a.txt', 'to/b.html', 'to/b.txt', 'to/d/1', 'to/d/e/2'])
  expect(await content(service, 'a.txt')).toBe('c.txt')
  expect((await service.call('GET', '/api/files/to/b.html')).body.content_type).toBe('text/html')
  const { body } = await service.call('GET', '/api/changes?page_size=1')
  expect(body.changes).toMatchObject([{ action: 'move', added: 3, replaced: 2, removed: 4 }])
})

test('two files change places in one change', async () => {
  await using service = await emptyService()
  await putAll(service, ['a', 'b'])

  const moves = [
    { from: 'a', to: 'b' },
    { from: 'b', to: 'a' },
  ]
  expect((await moveBatch(service, moves)).body).toEqual({ files_moved: 2 })
  expect([await content(service, 'a'), await content(service, 'b')]).toEqual(['b', 'a'])
})

test.each([
  ['a missing file', ['nowhere', 'x'], 404, 'file_not_found'],
  ['a missing directory', ['nowhere/', 'x/'], 404, 'directory_not_found'],
  ['a file twice', ['a', 'x'], 400, 'duplicate_path'],
  ['two files to one path', ['d/1', 'moved'], 400, 'duplicate_path'],
  ['a directory into itself', ['d/', 'd/e/'], 409, 'path_conflict'],
  ['a file below another', ['d/1', 'moved/1'], 409, 'path_conflict'],
  ['to a reserved path', ['r/', '/'], 400, 'reserved_path'],
  ['a file to a directory', ['d/1', 'x/'], 400, 'validation_failed'],
])('a batch that moves %s is refused and changes nothing', async (_what, [from, to], status, code) => {
  await using service = await emptyService()
  const all = ['a', 'd/1', 'r/tree']
  await putAll(service, all)

  const answer = await moveBatch(service, [
    { from: 'a', to: 'moved' },
    { from, to },
  ])

  expect([answer.status, answer.body.code, await paths(service)]).toEqual([status, code, all])
})

test('named files are deleted together, and only bytes that no other file has are freed', async () => {
  await using service = await emptyService()
  await service.put('a', 'shared')
  await service.put('b', 'shared')
  await service.put('c/d', 'own bytes')
  await service.put('e', 'kept')
  await content(service, 'c/d')

  const first = await remove(service, { paths: ['a', '/c/d'] })
  const second = await remove(service, { paths: ['b'] })

  expect(first.body).toEqual({ files_deleted: 2, bytes_freed: 9 })
  expect(second.body).toEqual({ files_deleted: 1, bytes_freed: 6 })
  expect([await paths(service), await content(service, 'c/d')]).toEqual([['e'], 404])
})

test('a directory is deleted with everything below it', async () => {
  await using service = await emptyService()
  await putAll(service, ['old/1', 'old/site/2', 'old/site/x/3', 'old/sites/4'])

  const { body } = await remove(service, { prefix: 'old/site/' })

  expect(body).toEqual({ files_deleted: 2, bytes_freed: 22 })
  expect(await paths(service)).toEqual(['old/1', 'old/sites/4'])
  const all = await remove(service, { prefix: '/' })
  expect([all.body, await paths(service)]).toEqual([{ files_deleted: 2, bytes_freed: 16 }, []])
})

test('a directory of more files than one piece is deleted whole', async () => {
  await using service = await emptyService({ MAX_BATCH_FILES: '1000' })
  for (const part of ['a', 'b']) {
    const files = Array.from({ length: 600 }, (_, at) => ({
      name: 'files',
      content: `${part}${at}`,
      filename: `${at % 30}/${at}`,
    }))
    await service.send('upload/batch', [{ name: 'path', content: `d/${part}` }, ...files])
  }

  const { body } = await remove(service, { prefix: 'd' })

  expect(body).toMatchObject({ files_deleted: 1200 })
  expect((await service.call('GET', '/api/files/tree')).body.tree).toMatchObject({ children: [] })
})

test.each([
  ['a missing file', { paths: ['a', 'nowhere'] }, 404, 'file_not_found'],
  ['a directory by its path', { paths: ['a', 'd'] }, 404, 'file_not_found'],
  ['a path twice', { paths: ['a', '/a'] }, 400, 'duplicate_path'],
  ['an invalid path', { paths: ['a', '../a'] }, 400, 'invalid_path'],
  ['no paths', { paths: [] }, 400, 'validation_failed'],
  ['1,001 paths', { paths: Array(1001).fill('a') }, 400, 'validation_failed'],
  ['nothing', {}, 400, 'validation_failed'],
  ['both', { paths: ['a'], prefix: 'd/' }, 400, 'validation_failed'],
  ['an empty prefix', { prefix: '' }, 400, 'validation_failed'],
  ['a missing directory', { prefix: 'nowhere/' }, 404, 'directory_not_found'],
  ['a file as a directory', { prefix: 'a/' }, 404, 'directory_not_found'],
])('deleting %s is refused and changes nothing', async (_what, json, status, code) => {
  await using service = await emptyService()
  await putAll(service, ['a', 'd/b'])

  const answer = await remove(service, json)

  expect([answer.status, answer.body.code]).toEqual([status, code])
  expect(await paths(service)).toEqual(['a', 'd/b'])
})

test('what is missing of several files that are moved or deleted is named', async () => {
  await using service = await emptyService()
  await putAll(service, ['a', 'd/b'])
  const moves = ['x', 'a', 'y'].map((from) => ({ from, to: `to/${from}` }))

  const refused = [
    await remove(service, { paths: ['x', 'a', 'y'] }),
    await remove(service, { prefix: 'z/' }),
    await moveBatch(service, moves),
    await moveBatch(service, [
      { from: 'd/', to: 'e/' },
      { from: 'z/', to: 'f/' },
    ]),
  ]

  expect(refused.map(({ status, body }) => [status, body.paths])).toEqual([
    [404, ['x', 'y']],
    [404, ['z/']],
    [404, ['x', 'y']],
    [404, ['z/']],
  ])
  expect(await paths(service)).toEqual(['a', 'd/b'])
})

test('1,000 paths of 1,024 bytes can be deleted in one request', async () => {
  await using service = await emptyService()
  const longest = `${'é'.repeat(127)}/`.repeat(4)
  const names = Array.from({ length: 1000 }, (_, at) => `${longest}${String(at).padStart(4, '0')}`)

  const { status, body } = await remove(service, { paths: names })

  expect([status, body.code]).toEqual([404, 'file_not_found'])
})

test('files can be named move and delete, though these paths have a POST', async () => {
  await using service = await emptyService()

  const answers = [
    await service.call('PUT', '/api/files/move', { body: 'x' }),
    await service.call('GET', '/api/files/move'),
    await service.call('HEAD', '/api/files/move'),
    await service.call('DELETE', '/api/files/move'),
    await service.call('GET', '/api/files/delete'),
    await service.call('PATCH', '/api/files/delete'),
  ]

  expect(answers.map(({ status, body }) => body.code ?? status)).toEqual([
    201,
    200,
    200,
    204,
    'file_not_found',
    'method_not_allowed',
  ])
  expect(answers[5]?.headers.allow).toBe('DELETE, GET, HEAD, POST, PUT')
})

test('only editors can move and delete', async () => {
  await using service = await emptyService()
  await service.put('a')

  const answers = [
    await move(service, { from: 'a', to: 'b' }, 'viewer'),
    await moveBatch(service, [{ from: 'a', to: 'b' }], 'viewer'),
    await remove(service, { paths: ['a'] }, 'viewer'),
    await move(service, { from: 'a', to: 'b' }, 'nobody'),
    await remove(service, { paths: ['a'] }, 'nobody'),
  ]

  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 401, 401])
})

test('a file that moves over another is not dated before that one', async () => {
  await using service = await emptyService()
  await service.put('a')
  const { body: before } = await service.put('b')

  await service.call('POST', '/api/files/move', { json: { from: 'a', to: 'b', overwrite: true } })

  const { body } = await service.call('GET', '/api/files/b')
  expect([body.path, body.sha256]).not.toEqual([before.path, before.sha256])
  expect(String(body.updated_at) >= String(before.updated_at)).toBe(true)
})
