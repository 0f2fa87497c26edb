import { expect, test } from 'vitest'
import { databases, openCatalog, toFile } from '../../support/catalogs.ts'

test.each(databases)('%s: changes after a restore have larger numbers than those before it', async (database) => {
  const catalog = await openCatalog(database)
  const row = { last_change: 4711, last_changed_at: '2026-01-01T00:00:00.000Z' }
  await catalog.writes.importRows({ table: 'catalog', rows: [row] })

  await catalog.writes.put({ files: [toFile('a')] })

  const { rows: changes } = await catalog.reads.changes({ prefix: '', page: 1, page_size: 1 })
  expect(changes.map(({ id }) => id)).toEqual([4712])
})
