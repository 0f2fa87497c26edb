import { DatabaseUnavailableError, type Postgres, sql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { findMiscounts } from '../../../src/catalog/find-miscounts.ts'
import { newDatabase, openReplica, putPaths, toFile } from '../../support/catalogs.ts'

const numbered = (count: number, write: (number: number) => string) =>
  Array.from({ length: count }, (_, at) => write(at))

async function openReplicas(count: number): Promise<{ catalogs: Catalog[]; postgres: Postgres }> {
  const { url } = await newDatabase()
  const replicas = []
  for (let at = 0; at < count; at += 1) replicas.push(await openReplica(url))
  const [first] = replicas
  if (!first) throw new Error('no replica')
  return { catalogs: replicas.map(({ catalog }) => catalog), postgres: first.postgres }
}

test('writers on three replicas at once leave exact counts', async () => {
  const { catalogs, postgres } = await openReplicas(3)
  const refusals = new Set<string>()
  const change = (catalog: Catalog, number: number): Promise<unknown> => {
    const path = `d${number % 3}/e${number % 5}/f${number % 7}`
    const file = { ...toFile(path), digest: String(number % 4).repeat(64), size: number % 4 }
    if (number % 6 === 0) return catalog.writes.remove({ paths: [path] })
    // Changes of directories wait for the others that arrive with them.
    if (number > 400) return catalog.writes.put({ files: [file] })
    if (number % 11 === 0) return catalog.removeBelow(`d${number % 3}`)
    if (number % 8 === 0) {
      return catalog.moveDirectory({ from: 'd0', to: `d1/e${number % 5}`, overwrite: true })
    }
    return catalog.writes.put({ files: [file] })
  }

  for (const from of [0, 200, 400]) {
    await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        change(catalogs[at % 3] as Catalog, from + at).catch((error) => refusals.add(error.code)),
      ),
    )
  }

  expect(await findMiscounts(postgres)).toEqual([])
  expect((await catalogs[0]?.totals())?.totalFiles).toBeGreaterThan(0)
  const known = ['directory_not_found', 'file_not_found', 'path_conflict', 'precondition_failed']
  expect([...refusals].filter((code) => !known.includes(String(code)))).toEqual([])
})

test('of the writers that create one file on three replicas, one succeeds', async () => {
  const { catalogs, postgres } = await openReplicas(3)
  const create = (catalog: Catalog) =>
    catalog.writes.put({ files: [toFile('only/once')], conditions: { ifNoneMatch: '*' } }).then(
      () => 'created',
      (error) => error.code,
    )

  const outcomes = await Promise.all([...catalogs, ...catalogs, ...catalogs].map(create))

  expect(outcomes.toSorted()).toEqual(['created', ...Array(8).fill('precondition_failed')])
  expect(await findMiscounts(postgres)).toEqual([])
})

test('a directory of more files than are handled at once is moved and removed as a whole', async () => {
  const { catalogs, postgres } = await openReplicas(1)
  const [catalog] = catalogs
  if (!catalog) throw new Error('no replica')
  await putPaths(
    catalog,
    numbered(5200, (number) => `from/${number % 50}/${number}`),
  )

  const moved = await catalog.moveDirectory({ from: 'from', to: 'to/there', overwrite: false })
  const miscountsAfterMove = await findMiscounts(postgres)
  const removed = await catalog.removeBelow('to')

  expect([moved, removed.files]).toEqual([5200, 5200])
  expect([miscountsAfterMove, await findMiscounts(postgres)]).toEqual([[], []])
  expect(await catalog.totals()).toMatchObject({ totalFiles: 0, totalSize: 0, storedSize: 0 })
})

test('contents are told in the same transaction which got their first and lost their last reference', async () => {
  const { url } = await newDatabase()
  const applied: unknown[] = []
  const { catalog, postgres } = await openReplica(url, {
    contents: {
      findMissing: async () => new Set(),
      apply: async (transaction, change) => {
        const rows = await transaction.all<{ path: string }>(sql`select path from static_service.files order by path`)
        applied.push({ ...change, paths: rows.map(({ path }) => path) })
      },
    },
  })
  const withContent = (path: string, digit: string) => ({
    ...toFile(path),
    digest: digit.repeat(64),
  })

  await catalog.writes.put({ files: [withContent('a', '1'), withContent('b', '1')] })
  await catalog.writes.remove({ paths: ['a'] })
  // The first command is committed alone, the others in one group.
  await Promise.all([
    catalog.writes.put({ files: [withContent('c', '1')] }),
    catalog.writes.put({ files: [withContent('d', '2')] }),
    catalog.writes.remove({ paths: ['d'] }),
    catalog.writes.remove({ paths: ['b'] }),
    catalog.writes.remove({ paths: ['c'] }),
  ])

  expect(applied).toEqual([
    { added: ['1'.repeat(64)], freed: [], paths: ['a', 'b'] },
    { added: [], freed: ['1'.repeat(64)], paths: [] },
  ])
  expect(await findMiscounts(postgres)).toEqual([])
})

test('a file whose content is missing is refused, and the others of its group are stored', async () => {
  const { url } = await newDatabase()
  const lost = toFile('lost')
  const { catalog } = await openReplica(url, {
    contents: {
      findMissing: async (_transaction, digests) => new Set(digests.filter((digest) => digest === lost.digest)),
      apply: async () => undefined,
    },
  })

  const outcomes = await Promise.allSettled(
    [toFile('first'), lost, toFile('other')].map((file) => catalog.writes.put({ files: [file] })),
  )

  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(outcomes[1]).toMatchObject({ reason: { status: 503, code: 'unavailable' } })
  expect(await catalog.find('lost')).toBeUndefined()
})

test('a change that is refused leaves nothing to the others of its group', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  const known = toFile('known')

  // The first command is committed alone, the others in one group.
  const outcomes = await Promise.allSettled([
    catalog.writes.put({ files: [known] }),
    catalog.writes.put({ files: [{ ...known, digest: '1'.repeat(64) }], conditions: { ifNoneMatch: '*' } }),
    catalog.writes.put({ files: [toFile('other')] }),
  ])

  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await catalog.find('known')).toMatchObject({ digest: known.digest })
  expect(await findMiscounts(postgres)).toEqual([])
})

test('a tree is refused where it needs more room than the quota has, but not where it makes room', async () => {
  const { url } = await newDatabase()
  const [a, b, c] = [12, 8, 1].map((size) => ({ ...toFile(`file ${size}`), size }))
  await (await openReplica(url)).catalog.writes.put({ files: [a, b].flatMap((file) => file ?? []) })
  const { catalog } = await openReplica(url, { quotaBytes: 10 })
  const replace = (...files: (typeof a)[]) =>
    catalog.writes.replaceTree({
      actor: { by: 'tester', token: null, requestId: '' },
      directory: '',
      source: { files: files.flatMap((file) => file ?? []), areStored: false },
      isMerge: false,
      conditions: {},
      version: undefined,
      isDryRun: false,
      maxFiles: 9,
    })

  await replace(a)

  expect((await catalog.totals()).storedSize).toBe(12)
  await expect(replace(a, c)).rejects.toMatchObject({ status: 507, code: 'quota_exceeded' })
})

test('a failure of the contents undoes the whole group', async () => {
  const { url } = await newDatabase()
  const failure = new Error('no contents')
  const { catalog } = await openReplica(url, {
    contents: {
      findMissing: async () => new Set(),
      apply: () => Promise.reject(failure),
    },
  })

  await expect(catalog.writes.put({ files: [toFile('a')] })).rejects.toBe(failure)

  expect(await catalog.totals()).toMatchObject({ totalFiles: 0, storedSize: 0 })
})

test('changes that wait behind an outage fail with it, and later ones succeed', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  const away = Promise.withResolvers<never>()
  const transaction = vi.spyOn(postgres, 'transaction').mockReturnValueOnce(away.promise)
  onTestFinished(() => transaction.mockRestore())
  const first = catalog.writes.put({ files: [toFile('a')] })
  await expect.poll(() => transaction.mock.calls).toHaveLength(1)
  const changes = [first, ...['b', 'c'].map((path) => catalog.writes.put({ files: [toFile(path)] }))]

  away.reject(new DatabaseUnavailableError(new Error('timeout')))
  const outcomes = await Promise.allSettled(changes)
  await catalog.writes.put({ files: [toFile('later')] })

  expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
  expect((await catalog.totals()).totalFiles).toBe(1)
})
