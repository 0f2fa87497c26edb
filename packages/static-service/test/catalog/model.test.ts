import fc from 'fast-check'
import { expect, test } from 'vitest'
import { check } from '../../src/maintenance/files-command.ts'
import { digest, Model } from '../support/model.ts'
import { type Service, start } from '../support/start.ts'

const segment = fc.constantFrom('a', 'b', 'Жук', 'é', '日本', 'x y', '%2e', "o'k")
const leaf = fc.constantFrom('a', 'b', 'A.png', 'Жaba.html', 'жук.txt', 'E\u00c9.png', '日.txt', '🙂')
const path = fc.tuple(fc.array(segment, { maxLength: 2 }), leaf).map(([above, name]) => [...above, name].join('/'))
const content = fc.constantFrom('', 'one', 'two', 'three', 'seventeen')
const file = fc.record({ path, content })

const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), file }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('batch' as const),
      files: fc.uniqueArray(file, { maxLength: 5, minLength: 1, selector: ({ path }) => path }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), path }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('removeBelow' as const), segment }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      paths: fc.oneof(
        fc.tuple(path, path),
        fc.tuple(segment, path).map(([from, to]) => [`${from}/`, `${to}/`] as const),
      ),
      overwrite: fc.boolean(),
    }),
  },
)

type Action = typeof action extends fc.Arbitrary<infer Value> ? Value : never

test('any sequence of changes leaves what a plain map would hold, however it is asked', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 25 }), async (actions) => {
      await using service = await start()
      const model = new Model()
      for (const each of actions) await act(service, model, each)
      await compare(service, model)
    }),
    { numRuns: Number(process.env.MODEL_RUNS ?? 3) },
  )
})

async function act(service: Service, model: Model, action: Action) {
  if (action.do === 'remove') {
    const isThere = model.remove(action.path)
    const { status } = await service.call('DELETE', `/api/files/${encode(action.path)}`)
    expect(status).toBe(isThere ? 204 : 404)
    return
  }
  if (action.do === 'removeBelow') {
    const count = model.removeBelow(action.segment)
    const json = { prefix: `${action.segment}/` }
    const { status, body } = await service.call('POST', '/api/files/delete', { json })
    expect(status === 200 ? body.files_deleted : 0).toBe(count)
    return
  }
  if (action.do === 'move') {
    const [from, to] = action.paths
    const json = { from, to, overwrite: action.overwrite }
    const expected = model.move(from, to, action.overwrite)
    const { status, body } = await service.call('POST', '/api/files/move', { json })
    const found = status === 404 ? 'missing' : status === 409 ? 'conflict' : body.files_moved
    expect(found).toBe(expected)
    return
  }
  const files = action.do === 'put' ? [action.file] : action.files
  const expected = model.put(files)
  const { status } =
    action.do === 'put'
      ? await service.put(action.file.path, action.file.content)
      : await service.send(
          'upload/batch',
          files.map(({ path, content }) => ({ name: 'files', content, filename: path })),
        )
  const good = action.do === 'put' && expected === 'replaced' ? 200 : 201
  expect(status).toBe(expected === 'conflict' ? 409 : good)
}

async function compare(service: Service, model: Model) {
  const get = async (path: string) => (await service.call('GET', path)).body
  for (const { path, content } of model.files) {
    const served = await service.call('GET', `/static/${encode(path)}`)
    expect(served.bytes.toString()).toBe(content)
    expect((await get(`/api/files/${encode(path)}`)).sha256).toBe(digest(content))
  }

  for (const sort of ['path', '-path', 'size', '-size']) {
    const [first, second] = [1, 2].map((page) => get(`/api/files?sort=${sort}&page_size=4&page=${page}`))
    const listed = [...((await first)?.files ?? []), ...((await second)?.files ?? [])]
    expect(listed.map(({ path }) => path)).toEqual(model.list({ sort }).slice(0, 8))
    expect((await first)?.pagination?.total_items).toBe(model.files.length)
  }
  const searches = ['a', 'Ж', 'жу', 'ЖУК', 'é', 'É.PNG', '日', '日本/', '/', '.t', 'x y/', '🙂', '%2e', 'zz']
  for (const search of searches) {
    for (const category of [undefined, 'image', 'document']) {
      const filter = category ? `&category=${category}` : ''
      const found = await get(`/api/files/?page_size=200&search=${encodeURIComponent(search)}${filter}`)
      const expected = model.list({ search, sort: 'path', ...(category ? { category } : {}) })
      expect(found.files?.map(({ path }) => path)).toEqual(expected)
      expect(found.pagination?.total_items).toBe(expected.length)
    }
  }

  for (const prefix of ['', ...model.directories()]) {
    for (const recursive of [true, false]) {
      for (const more of [{}, { search: 'a' }, { category: 'document' }]) {
        const query = { prefix, sort: '-size', page_size: '200', ...more }
        const fields = new URLSearchParams({ ...query, recursive: String(recursive) })
        const found = await get(`/api/files?${fields}`)
        const expected = model.list({ ...query, recursive })
        expect(found.files?.map(({ path }) => path)).toEqual(expected)
        expect(found.pagination?.total_items).toBe(expected.length)
      }
    }
  }

  expect((await get('/api/files/categories')).categories).toEqual(model.categories())
  expect(await get('/api/versions/stats')).toEqual(model.stats())
  expect((await get('/api/files/tree')).tree).toEqual(model.tree())
  for (const directory of model.directories()) {
    const { tree } = await get(`/api/files/tree?prefix=/${encodeURIComponent(directory)}/`)
    expect(tree).toEqual(model.tree(directory))
  }

  await expect.poll(() => service.storedContents()).toHaveLength(new Set(model.files.map((each) => each.content)).size)
  const report = await check({ DATA_DIR: service.dataDir })
  expect(report).toMatchObject({ damages: [], orphans: [] })
}

const encode = (path: string) => path.split('/').map(encodeURIComponent).join('/')
