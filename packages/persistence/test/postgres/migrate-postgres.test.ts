import { expect, it } from 'vitest'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { openPostgres, schema } from '../support/postgres.ts'

const first = `create table ${schema}.first (id int)`
const second = `create table ${schema}.second (id int)`

it('replicas that start at the same time migrate once', async () => {
  await using database = await testDatabase()

  const opened = await Promise.all([1, 2, 3, 4].map(() => openPostgres(database.url)))

  const rows = await opened[0]?.query(`select * from ${schema}.migrations`)
  expect(rows).toEqual([{ part: 'items', applied: 1 }])
  await Promise.all(opened.map((each) => each.close()))
})

it('a newer version applies only what the schema has not seen', async () => {
  await using database = await testDatabase()
  const older = await openPostgres(database.url, { migrations: { sample: [first] } })
  await older.query(`insert into ${schema}.first values (1)`)
  await older.close()

  await using newer = await openPostgres(database.url, { migrations: { sample: [first, second] } })

  expect(await newer.query(`select * from ${schema}.first`)).toEqual([{ id: 1 }])
  expect(await newer.query(`select * from ${schema}.second`)).toEqual([])
})

it('a schema of a newer version is refused in one sentence', async () => {
  await using database = await testDatabase()
  const newer = await openPostgres(database.url, { migrations: { sample: [first] } })
  await newer.close()

  const older = openPostgres(database.url, { migrations: { sample: [] } })

  await expect(older).rejects.toThrow(
    'The schema sample in DATABASE_URL is of a newer version of this service: start that version, or restore a backup made by this one.',
  )
})

it('PostgreSQL before 15 is refused in one sentence', async () => {
  await using database = await testDatabase()
  await using admin = await openPostgres(database.directUrl)
  await admin.query('create schema old')
  await admin.query(`create function old.current_setting(text) returns text language sql as $$ select '140022' $$`)
  const url = new URL(database.directUrl)
  url.searchParams.set('options', '-c search_path=old,pg_catalog')

  await expect(openPostgres(url.href)).rejects.toThrow(
    'PostgreSQL 14 is too old: DATABASE_URL needs version 15 or later.',
  )
})

it('a migration that fails leaves nothing behind', async () => {
  await using database = await testDatabase()
  const migrations = { sample: [first, 'create table nonsense'] }

  await expect(openPostgres(database.url, { migrations })).rejects.toThrow('syntax error')

  await using postgres = await openPostgres(database.url, { migrations: { sample: [first] } })
  expect(await postgres.query(`select * from ${schema}.first`)).toEqual([])
})

it('a user without the right to create schemas can own an empty one', async () => {
  await using database = await testDatabase()
  const owner = `owner_${new URL(database.directUrl).pathname.slice(1)}`
  const admin = await openPostgres(database.directUrl, { schema: 'admin', migrations: {} })
  await admin.query(`create role ${owner} login`)
  await admin.query(`create schema ${schema} authorization ${owner}`)
  const url = new URL(database.directUrl)
  url.username = owner

  const postgres = await openPostgres(url.href)

  expect(await postgres.query(`select * from ${schema}.items`)).toEqual([])
  await postgres.close()
  await admin.query(`drop schema ${schema} cascade`)
  await admin.query(`drop role ${owner}`)
  await admin.close()
})
