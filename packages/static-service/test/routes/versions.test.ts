import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, start } from '../support/start.ts'

// For tests that change nothing.
let shared: Service
beforeAll(async () => {
  shared = await start()
  await shared.call('POST', '/api/versions', { json: { version: '1.0', changelog: '' } })
})
afterAll(() => shared[Symbol.asyncDispose]())

test('versions are recorded, listed newest first, and the newest is public', async () => {
  await using service = await start()
  const record = (version: string, slash: string) =>
    service.call('POST', `/api/versions${slash}`, {
      json: { version, changelog: `what ${version} brought` },
      user: 'editor',
    })

  const first = await record('1.0.0', '')
  await record('1.1.0-rc.1+build_5', '/')
  const list = await service.call('GET', '/api/versions?page_size=1')
  const current = await service.call('GET', '/api/versions/current', { user: 'nobody' })
  const health = await service.call('GET', '/health', { user: 'nobody' })

  expect([first.status, first.body]).toEqual([
    201,
    {
      id: 1,
      version: '1.0.0',
      changelog: 'what 1.0.0 brought',
      created_by: 'editor',
      change: 0,
      files_kept: true,
      created_at: expect.stringMatching(/Z$/),
    },
  ])
  expect(list.body).toMatchObject({
    versions: [{ id: 2, version: '1.1.0-rc.1+build_5' }],
    pagination: { total_items: 2, total_pages: 2 },
  })
  expect(current.body).toMatchObject({ version: '1.1.0-rc.1+build_5' })
  expect(current.headers['cache-control']).toBe('public, max-age=5')
  expect(health.body).toMatchObject({ status: 'ok', current_version: '1.1.0-rc.1+build_5' })
})

test('a list cuts changelogs to 1 KiB, and each version has its own whole', async () => {
  await using service = await start()
  const changelogs = {
    short: 'x'.repeat(1024),
    long: `${'x'.repeat(1023)}é`,
    'a+b': 'é'.repeat(32_768),
  }
  for (const [version, changelog] of Object.entries(changelogs)) {
    await service.call('POST', '/api/versions', { json: { version, changelog } })
  }

  const list = await service.call('GET', '/api/versions')
  const wholes = await Promise.all(
    ['short', 'long/', 'a+b', 'a%2Bb/'].map((name) => service.call('GET', `/api/versions/${name}`)),
  )

  expect(list.body.versions).toMatchObject([
    { version: 'a+b', changelog: 'é'.repeat(512), changelog_truncated: true },
    { version: 'long', changelog: 'x'.repeat(1023), changelog_truncated: true },
    { version: 'short', changelog: changelogs.short },
  ])
  expect(JSON.stringify(list.body).match(/changelog_truncated/g)).toHaveLength(2)
  expect(wholes.map(({ body }) => body.changelog)).toEqual([
    changelogs.short,
    changelogs.long,
    changelogs['a+b'],
    changelogs['a+b'],
  ])
  expect(wholes[1]?.body).toMatchObject({ id: 2, version: 'long', created_by: 'admin' })
})

test.each([
  ['GET', '2.0', 404, 'version_not_found'],
  ['GET', 'a%2Fb', 404, 'version_not_found'],
  ['POST', '1.0', 405, 'method_not_allowed'],
])('%s of version %s is refused with %i', async (method, version, status, code) => {
  const answer = await shared.call(method, `/api/versions/${version}`)

  expect([answer.status, answer.body.code]).toEqual([status, code])
})

test('before the first version there is none', async () => {
  await using service = await start()

  const current = await service.call('GET', '/api/versions/current', { user: 'nobody' })
  const health = await service.call('GET', '/health')

  expect([current.status, current.body.code]).toEqual([404, 'no_version'])
  expect(health.body).toMatchObject({ version: '0.1.0', current_version: null })
})

test('the same version cannot be recorded twice, and the attempt takes no number', async () => {
  await using service = await start()
  const json = { version: '1', changelog: '' }
  await service.call('POST', '/api/versions/', { json })

  const again = await service.call('POST', '/api/versions/', { json })
  const next = await service.call('POST', '/api/versions/', { json: { ...json, version: '2' } })

  expect([again.status, again.body.code]).toEqual([409, 'version_exists'])
  expect([next.status, next.body.id]).toEqual([201, 2])
})

test('the newest version is not sent again while it is the newest', async () => {
  await using service = await start()
  await service.call('POST', '/api/versions/', { json: { version: '1', changelog: '' } })
  const { headers } = await service.call('GET', '/api/versions/current')
  const unless = { headers: { 'if-none-match': String(headers.etag) } }

  const same = await service.call('GET', '/api/versions/current', unless)
  await service.call('POST', '/api/versions/', { json: { version: '2', changelog: '' } })
  const newer = await service.call('GET', '/api/versions/current', unless)

  expect([same.status, newer.status]).toEqual([304, 200])
})

test.each([
  ['no version', { changelog: '' }, ['/version']],
  ['a version with a space', { version: '1 0', changelog: '' }, ['/version']],
  ['a version of 65 characters', { version: '1'.repeat(65), changelog: '' }, ['/version']],
  ['the name current', { version: 'current', changelog: '' }, ['/version']],
  ['the name stats', { version: 'stats', changelog: '' }, ['/version']],
  ['the name .', { version: '.', changelog: '' }, ['/version']],
  ['the name ..', { version: '..', changelog: '' }, ['/version']],
  ['no changelog', { version: '1' }, ['/changelog']],
  ['a changelog of more than 64 KiB', { version: '1', changelog: 'é'.repeat(32_769) }, ['/changelog']],
  ['U+0000', { version: '1', changelog: 'a\0b' }, ['/changelog']],
  ['half a character', { version: '1', changelog: '\ud800' }, ['/changelog']],
  ['an unknown field', { version: '1', changelog: '', date: 'today' }, ['/date']],
  ['several faults', { version: '', change: '' }, ['/version', '/changelog', '/change']],
])('a version with %s is refused', async (_what, json, paths) => {
  const { status, body } = await shared.call('POST', '/api/versions', { json })

  expect([status, body.code]).toEqual([400, 'validation_failed'])
  expect(body.errors?.map(({ path }) => path)).toEqual(paths)
})

test('the statistics count files, their bytes, and each content once', async () => {
  await using service = await start()
  await service.put('a.png', 'same')
  await service.put('b.png', 'same')
  await service.put('c.txt', 'other bytes')
  await service.call('POST', '/api/versions', { json: { version: '1', changelog: '' } })

  const { body } = await service.call('GET', '/api/versions/stats/')

  expect(body).toEqual({
    total_files: 3,
    total_size: 19,
    stored_size: 15,
    past_size: 0,
    categories: [
      { category: 'image', file_count: 2, total_size: 8 },
      { category: 'document', file_count: 1, total_size: 11 },
    ],
    versions: 1,
  })
})

test('who may only look cannot record, and only the newest version is public', async () => {
  const json = { version: '1', changelog: '' }

  const viewer = await shared.call('POST', '/api/versions', { json, user: 'viewer' })
  const list = await shared.call('GET', '/api/versions', { user: 'nobody' })
  const stats = await shared.call('GET', '/api/versions/stats', { user: 'nobody' })
  const one = await shared.call('GET', '/api/versions/1', { user: 'nobody' })

  expect([viewer.status, list.status, stats.status, one.status]).toEqual([403, 401, 401, 401])
})

test('the figures of the store can be read with the metrics token', async () => {
  await using service = await start()
  await service.put('a', 'four')

  const readFigures = async () => {
    const { bytes } = await service.call('GET', '/metrics', {
      user: 'nobody',
      headers: { authorization: 'Bearer metrics-token-of-tests' },
    })
    return bytes.toString().split('\n')
  }

  // Replicas read them in the background.
  await expect.poll(readFigures).toEqual(expect.arrayContaining(['static_files 1', 'static_stored_bytes 4']))
})

test('the description of the API names every route, and each of our operations once', async () => {
  const { body } = await shared.call('GET', '/openapi.json')

  expect(Object.keys(Object(body.paths)).sort()).toEqual([
    '/api/access',
    '/api/access/{path}',
    '/api/auth/login',
    '/api/auth/logout',
    '/api/auth/me',
    '/api/auth/methods',
    '/api/auth/oidc/callback',
    '/api/auth/oidc/login',
    '/api/auth/oidc/token',
    '/api/auth/password',
    '/api/auth/token',
    '/api/changes',
    '/api/changes/{id}',
    '/api/changes/{id}/revert',
    '/api/contents/{sha256}',
    '/api/events',
    '/api/files',
    '/api/files/categories',
    '/api/files/delete',
    '/api/files/move',
    '/api/files/move/batch',
    '/api/files/tree',
    '/api/files/upload',
    '/api/files/upload/batch',
    '/api/files/{path}',
    '/api/history',
    '/api/history/content',
    '/api/links',
    '/api/links/{id}',
    '/api/tokens',
    '/api/tokens/{id}',
    '/api/trees/{path}',
    '/api/trusts',
    '/api/trusts/{id}',
    '/api/uploads',
    '/api/uploads/{id}',
    '/api/users',
    '/api/users/{username}',
    '/api/versions',
    '/api/versions/current',
    '/api/versions/stats',
    '/api/versions/{version}',
    '/api/versions/{version}/diff',
    '/api/versions/{version}/files',
    '/api/webhooks',
    '/api/webhooks/{id}',
    '/api/webhooks/{id}/deliveries',
    '/api/webhooks/{id}/deliveries/{delivery}/retry',
    '/api/webhooks/{id}/test',
    '/health',
    '/l/{token}',
    '/l/{token}/{path}',
    '/metrics',
    '/static/{path}',
  ])
  const names = JSON.stringify(body.paths).match(/"operationId":"[^"]*"/g)
  expect(new Set(names).size).toBe(names?.length)
})
