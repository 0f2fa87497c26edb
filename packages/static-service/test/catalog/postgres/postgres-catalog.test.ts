import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import type { Conditions } from '../../../src/catalog/changes/file-changes.ts'
import { sorts } from '../../../src/catalog/listing/list-query.ts'
import type { FileRow, NewFile } from '../../../src/catalog/tables.ts'
import type { Category } from '../../../src/files/media-type.ts'
import { UploadLimits } from '../../../src/routes/files/store-files.ts'
import { newDatabase, openCatalog, openReplica } from '../../support/catalogs.ts'
import { keepRows } from '../../support/lost-commits.ts'

const quotaBytes = 250

/** A change, given the digest of each file before its group. */
type Change = (catalog: Catalog, digests: Map<string, string>) => Promise<unknown>

const segment = fc.constantFrom('a', 'b', 'Жук', 'é', '日本', 'x y', '%2e', "o'k", 'a-b', 'STRASSE')
const leaf = fc.constantFrom('a', 'B', '"q"', 'Жaba', 'straße', 'ΐ', 'İ', 'Σίσυφος', '日', '🙂', '_', '}{')
const path = fc.tuple(fc.array(segment, { maxLength: 3 }), leaf).map(([above, name]) => [...above, name].join('/'))
const directory = fc.array(segment, { maxLength: 3 }).map((segments) => segments.join('/'))

const categories: Category[] = ['image', 'document', 'other']
const contentNumber = fc.integer({ min: 0, max: 9 })
const digestOf = (number: number) => String(number).repeat(64)

const file = fc.record({ path, number: contentNumber, category: fc.constantFrom(...categories) }).map(
  ({ path, number, category }): NewFile => ({
    path,
    digest: digestOf(number),
    size: number * 7,
    category,
    contentType: `${category}/x`,
    uploadedBy: 'tester',
  }),
)

const conditions: fc.Arbitrary<Conditions> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.constant({ ifNoneMatch: '*' as const }) },
  {
    weight: 1,
    arbitrary: contentNumber.map((number) => ({ ifMatch: [`"${digestOf(number)}"`] })),
  },
)

const put = fc
  .tuple(fc.uniqueArray(file, { minLength: 1, maxLength: 4, selector: ({ path }) => path }), conditions)
  .map(
    ([files, condition]): Change =>
      (catalog) =>
        catalog.writes.put({ files, conditions: condition }),
  )

const movedType = { contentType: 'moved/x', category: 'other' as const }

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 9, arbitrary: put },
  {
    weight: 2,
    arbitrary: fc.tuple(path, conditions).map(
      ([at, condition]): Change =>
        (catalog) =>
          catalog.writes.remove({ paths: [at], conditions: condition }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.uniqueArray(path, { minLength: 1, maxLength: 2 }).map(
      (paths): Change =>
        (catalog) =>
          catalog.writes.remove({ paths }),
    ),
  },
  {
    weight: 1,
    arbitrary: directory.map(
      (at): Change =>
        (catalog) =>
          catalog.removeBelow(at),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(path, path, fc.boolean()).map(
      ([from, to, overwrite]): Change =>
        (catalog, digests) =>
          catalog.writes.moveFiles({
            moves: [{ from, to, overwrite, type: { digest: digests.get(from) ?? '', ...movedType } }],
          }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.record({ from: directory, to: directory, overwrite: fc.boolean() }).map(
      (move): Change =>
        (catalog) =>
          catalog.moveDirectory(move),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('1', '2', '3', '4').map(
      (version): Change =>
        (catalog) =>
          record(catalog, version),
    ),
  },
)

// MODEL_RUNS=100 is the long form (npm run faults).
const count = 40 * Number(process.env.MODEL_RUNS ?? 3)

test(`${count} random changes have the same outcomes and leave the same answers as in SQLite`, async () => {
  const catalogs = [await openCatalog('SQLite', { quotaBytes }), await openCatalog('PostgreSQL', { quotaBytes })]
  const changes = fc.sample(change, count)
  const kinds = new Set<string>()

  for (let from = 0, size = 1; from < changes.length; from += size, size = (size % 15) + 2) {
    const group = changes.slice(from, from + size)
    const digests = await digestsIn(catalogs[0])
    const [sqlite = [], postgres] = await Promise.all(
      catalogs.map((catalog) => Promise.all(group.map((each) => outcomeOf(each(catalog, digests))))),
    )
    expect({ from, outcomes: postgres }).toEqual({ from, outcomes: sqlite })
    const [before, after] = await Promise.all(catalogs.map(readAll))
    expect({ from, answers: after }).toEqual({ from, answers: before })
    for (const outcome of sqlite) kinds.add(Array.isArray(outcome) ? outcome[0] : 'done')
  }

  expect([...kinds].sort()).toEqual([
    'directory_not_found',
    'done',
    'file_not_found',
    'path_conflict',
    'precondition_failed',
    'quota_exceeded',
    'version_exists',
  ])
})

async function digestsIn(catalog: Catalog | undefined) {
  const files = await catalog?.reads.list({ sort: 'path', page: 1, page_size: 10_000 })
  return new Map(files?.rows.map(({ path, digest }) => [path, digest]))
}

async function record(catalog: Catalog, version: string) {
  const recorded = await catalog.writes.record({
    version,
    changelog: 'ü'.repeat(700),
    createdBy: 'x',
  })
  return withoutTimes(recorded)
}

/** What a caller sees of a change, except times. */
async function outcomeOf(change: Promise<unknown>) {
  try {
    const value = await change
    return isPut(value) ? { ...value, rows: value.rows.map(withoutTimes) } : value
  } catch (error) {
    return error instanceof Error && 'code' in error ? [error.code, error.message] : error
  }
}

const isPut = (value: unknown): value is { rows: FileRow[] } =>
  typeof value === 'object' && value !== null && 'rows' in value

const withoutTimes = ({ createdAt, updatedAt, ...rest }: Partial<FileRow>) => ({
  ...rest,
  times: [createdAt, updatedAt].filter((time) => time && !isTime.test(time)),
})

const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const searches = ['a', 'ж', '日', 'ss', 'SS/', '/', ' ', '🙂', 'strasse', 'σίσ', '%', '"', '}{', 'zz', 'ί']

async function readAll(catalog: Catalog) {
  const lists = [
    ...sorts.filter((sort) => !sort.endsWith('updated_at')).map((sort) => ({ sort })),
    ...searches.map((search) => ({ search, sort: 'path' as const })),
    { search: 'a', category: 'document' as const, sort: '-size' as const },
    { prefix: 'a', sort: 'size' as const },
    { prefix: 'a', recursive: false, sort: '-path' as const },
    { category: 'image' as const, sort: '-path' as const },
  ]
  const read: unknown[] = []
  // One after another: all at once, some wait longer for a connection than they may on a busy machine.
  for (const query of lists) {
    const { rows, next, ...counts } = await catalog.reads.list({ page: 1, page_size: 5, ...query })
    const second = await catalog.reads.list({ page: 2, page_size: 5, ...query })
    const shown = [...rows, ...second.rows].map(withoutTimes)
    read.push({ query, ...counts, next: next && withoutTimes(next), rows: shown })
  }
  const limits = new UploadLimits(catalog, 1000, quotaBytes)
  const versions = await catalog.reads.versions({ skip: 0, take: 3 })
  return {
    lists: read,
    tree: Buffer.from((await catalog.reads.tree({ prefix: '', depth: 32 })) ?? '').toString(),
    subtree: Buffer.from((await catalog.reads.tree({ prefix: 'a', depth: 1 })) ?? '').toString(),
    usage: [await catalog.reads.usage(''), await catalog.reads.usage('a'), await catalog.reads.usage('none')],
    totals: await catalog.totals(),
    contents: (await catalog.reads.contents('')).sort((one, other) => (one.digest < other.digest ? -1 : 1)),
    versions: versions.map(withoutTimes),
    newest: (await catalog.newestVersion())?.version,
    checks: await Promise.all(
      ['a', 'a/B', 'a/a/B', 'é/日'].map(async (at) => [
        await outcomeOf(limits.checkTarget(at, { ifNoneMatch: '*' })),
        await outcomeOf(limits.checkQuota(at, 60, 1000)),
        await outcomeOf(limits.checkQuota(at, 14)),
      ]),
    ),
  }
}

test('health checks see that the database has lost a version', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  await record(catalog, '1')
  const loseCommits = await keepRows(postgres)
  await record(catalog, '2')
  expect(catalog.status().totals?.newestVersion).toBe('2')

  await loseCommits()

  await expect.poll(() => catalog.status().totals?.newestVersion).toBe('1')
})
