import { name, type Sql, SqliteSql, sql } from '@domains-and-files/persistence'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Catalog } from '../../../src/catalog/catalog.ts'
import { findMiscounts } from '../../../src/catalog/find-miscounts.ts'
import { databaseFile, openSqliteCatalog } from '../../../src/catalog/sqlite/sqlite-catalog.ts'
import { databases, makeFolder, newDatabase, openReplica, toFile } from '../../support/catalogs.ts'

const rules = { keepDays: 30, keepVersions: 2, entryDays: 0 }

const longAgo = '2001-01-01T00:00:00.000Z'

/** A content of so many bytes. */
const contentOf = (path: string, content: string, size = 4) => ({
  ...toFile(path),
  digest: Buffer.from(content).toString('hex').padStart(64, '0'),
  size,
})

describe.each(databases)('%s', (database) => {
  const open = async (history: Partial<typeof rules> = {}, quotaBytes?: number) => {
    const options = { history: { ...rules, ...history }, ...(quotaBytes && { quotaBytes }) }
    const { catalog, sql } = await openWith(options)
    const freed: string[] = []
    catalog.onFree = (digests) => freed.push(...digests)
    const put = (content: string, size?: number) => catalog.writes.put({ files: [contentOf('a', content, size)] })
    const at = (change: number) =>
      catalog.reads.fileAt({ path: 'a', change }).then(
        ({ digest }) => Buffer.from(digest, 'hex').toString().replaceAll('\0', ''),
        ({ code }) => code,
      )
    const sizes = async () => {
      const { storedSize, pastSize } = await catalog.totals()
      return [storedSize, pastSize]
    }
    onTestFinished(async () => expect(await findMiscounts(catalog.database)).toEqual([]))
    const dropPast = async (need: number) => (await catalog.writes.prune({ need })).rows
    return { catalog, sql, freed, put, at, sizes, dropPast }
  }

  async function openWith(
    options: Parameters<typeof openReplica>[1] & object,
  ): Promise<{ catalog: Catalog; sql: Sql }> {
    if (database === 'PostgreSQL') {
      const { catalog, postgres } = await openReplica((await newDatabase()).url, options)
      return { catalog, sql: postgres }
    }
    const folder = makeFolder()
    const catalog = await openSqliteCatalog(folder, options)
    const beside = new SqliteSql({ file: databaseFile(folder) })
    onTestFinished(async () => {
      await beside.close()
      await catalog.close()
    })
    return { catalog, sql: beside }
  }

  /** Records a version, and prunes what it displaced. */
  const record = async (catalog: Catalog, version: string) => {
    await catalog.writes.record({ version, changelog: '', createdBy: 'tester' })
    await catalog.writes.prune({})
  }

  test('what ended long ago goes with its content, unless one of the newest versions shows it', async () => {
    const { catalog, sql: beside, freed, put, at, sizes } = await open()
    await put('one')
    await record(catalog, '1')
    await put('two')
    await put('three')
    await beside.run(sql`update ${name('past_files')} set ended_at = ${longAgo}`)
    await beside.run(sql`update ${name('changes')} set at = ${longAgo}`)
    await record(catalog, '2')
    await expect.poll(sizes).toEqual([4, 4])
    expect([await at(1), await at(2), await at(3)]).toEqual(['one', 'history_gone', 'three'])
    const tree = () => catalog.reads.openTree({ directory: '', at: 1 })
    expect(await tree()).toMatchObject({ files: 1, change: 1 })

    await record(catalog, '3')
    await expect.poll(sizes).toEqual([4, 0])

    await expect(tree()).rejects.toMatchObject({ code: 'history_gone' })
    expect(freed.map((digest) => Buffer.from(digest, 'hex').toString().replaceAll('\0', ''))).toEqual(['two', 'one'])
    // Without HISTORY_DAYS its entries stay.
    expect((await catalog.reads.states({ path: 'a', page: 1, page_size: 9 })).total).toBe(3)
  })

  test('a content that came back is not removed with the past', async () => {
    const { catalog, sql: beside, freed, put, sizes } = await open()
    for (const content of ['one', 'two', 'one', 'two', 'one']) await put(content)
    await catalog.writes.put({ files: [contentOf('b', 'two')] })
    expect(await sizes()).toEqual([8, 0])

    await beside.run(sql`update ${name('past_files')} set ended_at = ${longAgo}`)
    await record(catalog, '1')
    const rows = () => beside.all(sql`select path from ${name('past_files')}`)
    await expect.poll(rows).toEqual([])

    expect([await sizes(), freed]).toEqual([[8, 0], []])
  })

  test('the quota holds for files and their past together: the oldest past goes, no upload is refused for it', async () => {
    const { catalog, put, at, sizes } = await open({}, 10)
    await put('one')
    await put('two')
    expect(await sizes()).toEqual([4, 4])
    await put('three')
    expect(await sizes()).toEqual([4, 4])
    expect([await at(1), await at(2)]).toEqual(['history_gone', 'two'])

    await put('four', 10)
    expect(await sizes()).toEqual([10, 0])
    await expect(catalog.writes.put({ files: [contentOf('b', 'five', 1)] })).rejects.toMatchObject({
      code: 'quota_exceeded',
    })
    await catalog.writes.remove({ paths: ['a'] })
    expect(await sizes()).toEqual([0, 10])
    await catalog.writes.put({ files: [contentOf('b', 'five', 1)] })
    expect(await sizes()).toEqual([1, 0])
  })

  test('contents without a file may not exceed the quota with the files, and go after all of the past', async () => {
    const { catalog, put, at, sizes, dropPast } = await open({}, 10)
    const keep = async (content: string, isLimited = true) => {
      const { digest, size } = contentOf('', content)
      await catalog.writes.keepContents({
        contents: [{ digest, size }],
        callerId: 'tester',
        isLimited,
      })
    }
    const isKept = async (content: string) => catalog.isReferenced(contentOf('', content).digest)
    await put('one')
    await put('two')
    await keep('first')
    expect([await sizes(), await at(1), await at(2)]).toEqual([[4, 4], 'history_gone', 'two'])
    await put('three', 2)
    await put('four', 2)
    expect([await sizes(), await at(3)]).toEqual([[2, 6], 'three'])

    await keep('second')
    expect([await sizes(), await at(3)]).toEqual([[2, 8], 'history_gone'])
    await expect(keep('third')).rejects.toMatchObject({ code: 'quota_exceeded' })
    expect([await sizes(), await isKept('third')]).toEqual([[2, 8], false])
    await keep('third', false)
    expect(await sizes()).toEqual([2, 12])

    await put('five', 2)
    expect([await sizes(), await at(4), await isKept('third')]).toEqual([[2, 8], 'history_gone', true])
    expect(await dropPast(1)).toBe(1)
    expect(await sizes()).toEqual([2, 4])
  })

  test('a content without a file is kept for a day after it was sent last', async () => {
    const { catalog, sql: beside } = await open()
    const { digest, size } = contentOf('', 'kept')
    const contents = [{ digest, size }]
    const keep = () => catalog.writes.keepContents({ contents, callerId: 'tester', isLimited: true })
    const isKeptAfter = async (hours: number) => {
      const row = await beside.get<{ at: string }>(sql`select ended_at as at from ${name('past_files')}`)
      const earlier = new Date(Date.parse(row?.at ?? '') - hours * 3_600_000).toISOString()
      await beside.run(sql`update ${name('past_files')} set ended_at = ${earlier}`)
      await catalog.writes.prune({})
      return catalog.isReferenced(digest)
    }

    await keep()
    const first = await isKeptAfter(23)
    await keep()

    expect([first, await isKeptAfter(23), await isKeptAfter(2)]).toEqual([true, true, false])
  })

  test('the oldest past makes room where it is needed', async () => {
    const { put, at, sizes, dropPast } = await open()
    for (const content of ['one', 'two', 'three', 'four']) await put(content)

    expect(await dropPast(5)).toBe(2)
    expect([await at(1), await at(2), await at(3)]).toEqual(['history_gone', 'history_gone', 'three'])
    expect([await dropPast(1000), await dropPast(1000)]).toEqual([1, 0])
    expect(await sizes()).toEqual([4, 0])
  })

  test.each([
    [0, [3]],
    [30, [3, 2]],
  ])('entries of changes go after HISTORY_DAYS, and after the past of %i days', async (keepDays, left) => {
    const { catalog, sql: beside, put } = await open({ keepDays, entryDays: 5 })
    for (const content of ['one', 'two', 'three']) await put(content)
    const tenDaysAgo = new Date(Date.now() - 864_000_000).toISOString()
    await beside.run(sql`update ${name('changes')} set at = ${tenDaysAgo} where id = 2`)
    await beside.run(sql`update ${name('changes')} set at = ${longAgo} where id = 1`)
    await record(catalog, '1')

    const ids = async () => {
      const query = { prefix: '', page: 1, page_size: 9 }
      return (await catalog.reads.changes(query)).rows.map(({ id }) => id)
    }
    await expect.poll(ids).toEqual(left)
    const states = await catalog.reads.states({ path: 'a', page: 1, page_size: 9 })
    expect(states.rows.map(({ change }) => change)).toEqual(left)
  })
})
