import { expect, test } from 'vitest'
import { databases, openCatalog, toFile } from '../../support/catalogs.ts'

test.each(databases)(
  '%s: changes after a restore have larger numbers than those that versions name',
  async (database) => {
    const catalog = await openCatalog(database)
    const createdAt = '2026-01-01T00:00:00.000Z'
    await catalog.writes.importRows({
      table: 'versions',
      rows: [{ id: 1, version: '1', changelog: '', createdBy: 'tester', createdAt, changeId: 4711 }],
    })

    await catalog.writes.put({ files: [toFile('a')] })

    const { rows: changes } = await catalog.reads.changes({ prefix: '', page: 1, page_size: 1 })
    expect(changes.map(({ id }) => id)).toEqual([4712])
  },
)
