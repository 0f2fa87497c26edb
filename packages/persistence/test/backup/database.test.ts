import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { name, sql } from '../../src/index.ts'
import {
  contentsOf,
  fill,
  makeFolder,
  openInFolder,
  openInPostgres,
  runBackup,
  runRestore,
} from '../support/archived-service.ts'

const contents = [Buffer.from('small'), Buffer.alloc(100_000, 'large')]

test('a backup goes from a directory into PostgreSQL, and from there into a directory, unchanged', async () => {
  const outside = makeFolder()
  const [first, second] = [join(outside, 'first'), join(outside, 'second')]
  const store = await openInFolder(join(outside, 'data'))
  await fill(store, 1200, contents)
  const shared = await openInPostgres()

  await runBackup(store, first)
  await runRestore({ dataDir: outside, database: shared.database, blobs: shared.blobs }, first)
  await runBackup(shared, second, { verify: true })
  await runRestore({ dataDir: join(outside, 'copy') }, second)

  const copy = await openInFolder(join(outside, 'copy'))
  expect(await contentsOf(copy)).toEqual(await contentsOf(store))
  expect(fs.readFileSync(join(outside, 'copy/users.json'), 'utf8')).toBe('["adam"]')
  expect(await shared.database.query('select name from sample.users')).toEqual([{ name: 'adam' }])
  for (const each of [shared, copy]) {
    await each.sql.run(sql`insert into ${name('items')} (bytes) values (${Buffer.alloc(0)})`)
    const [last] = await each.sql.all(sql`select max(id) id from ${name('items')}`)
    expect(last).toEqual({ id: 1201 })
  }
})

test('an interrupted restore keeps services from starting, and is continued', async () => {
  const outside = makeFolder()
  const backups = join(outside, 'backups')
  const store = await openInFolder(join(outside, 'data'))
  await fill(store, 1200, contents)
  await runBackup(store, backups)
  const { url, database, ...shared } = await openInPostgres()
  const controller = new AbortController()
  const stop = (table: string) => table === 'pages' && controller.abort(new Error('stopped'))

  const target = { dataDir: outside, database }
  const { signal } = controller
  const first = runRestore({ ...target, onRows: stop }, backups, { signal })
  await expect(first).rejects.toThrow('stopped')
  await expect(openInPostgres({ url, isRestore: false })).rejects.toThrow('was interrupted: run it again')
  await runRestore(target, backups)

  expect(await contentsOf({ ...shared })).toEqual(await contentsOf(store))
  const service = await openInPostgres({ url, isRestore: false })
  expect(service.database.isAvailable).toBe(true)
  await expect(runRestore(target, backups)).rejects.toThrow('is not empty')
})

test('a restore overwrites nothing, and is not continued with another backup', async () => {
  const outside = makeFolder()
  const backups = join(outside, 'backups')
  const store = await openInFolder(join(outside, 'data'))
  await fill(store, 1, [])
  await runBackup(store, backups)
  const { database } = await openInPostgres()
  const target = { dataDir: outside, database }
  await database.query("insert into sample.users values ('eve')")

  await expect(runRestore(target, backups)).rejects.toThrow(
    'The table sample.users is not empty: a restore overwrites nothing. Stop all replicas.',
  )

  await database.query('delete from sample.users')
  const fail = () => {
    throw new Error('stopped')
  }
  await expect(runRestore({ ...target, onRows: fail }, backups)).rejects.toThrow('stopped')
  await runBackup(store, backups)
  await expect(runRestore(target, backups)).rejects.toThrow('Another backup was being restored')
})

test('a restore beside a service that was starting when it began fails, and is unfinished', async () => {
  const outside = makeFolder()
  const backups = join(outside, 'backups')
  const store = await openInFolder(join(outside, 'data'))
  await fill(store, 1200, contents)
  await runBackup(store, backups)
  const { url, database } = await openInPostgres()
  const service = await openInPostgres({ url, isRestore: false })
  let added: Promise<unknown> | undefined
  const addUser = () => {
    added ??= service.database.query("insert into sample.users values ('eve')")
  }

  await expect(runRestore({ dataDir: outside, database, onRows: addUser }, backups)).rejects.toThrow(
    'The table sample.users is not empty',
  )

  await added
  expect(await database.query('select name from sample.users')).toEqual([{ name: 'eve' }])
  await expect(openInPostgres({ url, isRestore: false })).rejects.toThrow('was interrupted: run it again')
})
