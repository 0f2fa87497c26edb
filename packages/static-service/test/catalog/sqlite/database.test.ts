import { statSync } from 'node:fs'
import { eventMigrations } from '@domains-and-files/events'
import { SqliteSql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { catalogMigrations } from '../../../src/catalog/migrations.ts'
import { databaseFile, openDatabase, openSqliteCatalog } from '../../../src/catalog/sqlite/sqlite-catalog.ts'
import { makeFolder, putPaths } from '../../support/catalogs.ts'

test('every commit waits for the disk, also after reopening', async () => {
  const file = databaseFile(makeFolder())
  await openDatabase(file).close()

  const again = openDatabase(file)
  const settings = ['synchronous', 'journal_mode'].map((name) => again.database.pragma(name, { simple: true }))
  await again.close()

  expect(settings).toEqual([2, 'wal'])
})

test('a database of a newer version is left alone', async () => {
  const file = databaseFile(makeFolder())
  const sql = openDatabase(file)
  sql.database.exec('update migrations set applied = 99')
  await sql.close()

  expect(() => openDatabase(file)).toThrow('is of a newer version of this service')
})

test('a database of an earlier version gets the index from which trees are read', async () => {
  const file = databaseFile(makeFolder())
  const migrations = { catalog: catalogMigrations.slice(0, 1), ...eventMigrations }
  await new SqliteSql({ file, migrations }).close()

  const migrated = openDatabase(file)
  const plan = migrated.database
    .prepare('explain query plan select name, size, content_type from files where directory = ? order by name')
    .all('d')
  await migrated.close()

  expect(JSON.stringify(plan)).toContain('USING COVERING INDEX files_of_directory')
})

test('a large deletion leaves no large log', async () => {
  const folder = makeFolder()
  const catalog = await openSqliteCatalog(folder)
  onTestFinished(() => catalog.close())
  await putPaths(
    catalog,
    Array.from({ length: 5000 }, (_, at) => `d/${at}`),
  )

  await catalog.removeBelow('d')

  expect(statSync(`${databaseFile(folder)}-wal`).size).toBe(0)
})
