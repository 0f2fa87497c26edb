import type { Postgres } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
import { newDatabase, openReplica, toFile } from '../../support/catalogs.ts'
import { keepRows } from '../../support/lost-commits.ts'

/**
 * Counts the statements that look files up. `fault` takes the place of one by its number; statements in the background, such
 * as probes, pass.
 */
function watchLookups(
  postgres: Postgres,
  fault: (count: number) => Promise<never> | undefined = () => undefined,
): () => number {
  let count = 0
  const query = postgres.query.bind(postgres)
  vi.spyOn(postgres, 'query').mockImplementation((text, values) => {
    if (!text.includes('array_position(')) return query(text, values)
    count += 1
    return fault(count) ?? query(text, values)
  })
  return () => count
}

test('look-ups of one event-loop iteration go in one statement', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  await catalog.writes.put({ files: ['a', 'b', 'c'].map(toFile) })
  const lookups = watchLookups(postgres)

  const found = await Promise.all(['a', 'b', 'nothing', 'c', 'a'].map((path) => catalog.find(path)))

  expect(found.map((row) => row?.path)).toEqual(['a', 'b', undefined, 'c', 'a'])
  expect(lookups()).toBe(1)
})

test('a change by one replica is seen by the next look-up of every other', async () => {
  const { url } = await newDatabase()
  const [one, other] = [await openReplica(url), await openReplica(url)]
  const [stored] = (await one.catalog.writes.put({ files: [toFile('a')] })).rows

  const first = await other.catalog.find('a')
  const unchanged = await other.catalog.find('a')
  await one.catalog.writes.put({ files: [{ ...toFile('a'), digest: 'f'.repeat(64) }] })
  const replaced = await other.catalog.find('a')
  await one.catalog.writes.moveFiles({
    moves: [{ from: 'a', to: 'b', overwrite: false, type: moved }],
  })
  const gone = await other.catalog.find('a')
  const there = await other.catalog.find('b')

  expect(first).toEqual(stored)
  expect(unchanged).toBe(first)
  expect([replaced?.digest, gone, there?.digest]).toEqual([moved.digest, undefined, moved.digest])
})

const moved = { digest: 'f'.repeat(64), contentType: 'text/plain', category: 'document' } as const

test('a file whose change has the number of one that the database has lost is found, not the lost one', async () => {
  const { url } = await newDatabase()
  const [one, other] = [await openReplica(url), await openReplica(url)]
  await one.catalog.writes.put({ files: [toFile('b')] })
  const loseCommits = await keepRows(one.postgres)
  await one.catalog.writes.put({ files: [toFile('a')] })
  await other.catalog.find('a')

  await loseCommits()
  const [stored] = (await one.catalog.writes.put({ files: [{ ...toFile('a'), ...moved }] })).rows

  expect(await other.catalog.find('a')).toEqual(stored)
})

test('after a failure the next look-up works', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  await catalog.writes.put({ files: [toFile('a')] })
  watchLookups(postgres, (count) => (count === 1 ? Promise.reject(new Error('gone')) : undefined))

  await expect(catalog.find('a')).rejects.toThrow('gone')

  expect((await catalog.find('a'))?.path).toBe('a')
})

test('look-ups without an answer do not hold up later ones', async () => {
  const { url } = await newDatabase()
  const { catalog, postgres } = await openReplica(url)
  await catalog.writes.put({ files: [toFile('a')] })
  const silent = Promise.withResolvers<never>()
  const lookups = watchLookups(postgres, (count) => (count <= 2 ? silent.promise : undefined))
  const stuck = []
  for (const path of ['a', 'b']) {
    stuck.push(catalog.find(path))
    await new Promise((resolve) => setImmediate(resolve))
  }

  expect(lookups()).toBe(2)
  const found = await catalog.find('a')
  silent.reject(new Error('timeout'))

  expect(found?.path).toBe('a')
  expect((await Promise.allSettled(stuck)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})
