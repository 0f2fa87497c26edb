import { join } from 'node:path'
import { SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { accountTables, openAuthFile } from '../src/auth-database.ts'
import { OneTime } from '../src/one-time.ts'
import { makeDatabase, schema } from './support/database.ts'
import { makeFolder } from './support/start.ts'

test('what was used stays used after a restart, until it has been expired for a day', async () => {
  await using folder = await makeFolder()
  const clock = { ms: 1000 }
  const put = async () => {
    const database = openAuthFile(folder.path)
    try {
      return await new OneTime(database, () => clock.ms).put('token', '', 2000)
    } finally {
      await database.close()
    }
  }

  expect([await put(), await put()]).toEqual([true, false])
  clock.ms = 2000
  expect(await put()).toBe(false)
  clock.ms += 86_400_000
  expect(await put()).toBe(true)
})

test('what one replica has put is there for another, also by a fast clock', async () => {
  await using folder = await makeFolder()
  const database = openAuthFile(folder.path)
  const [fast, slow] = [new OneTime(database, () => 60_000), new OneTime(database, () => 1000)]

  await fast.put('session', '', 2000)
  await fast.put('other', '', 2000)

  const puts = [await slow.put('session', '', 2000), await slow.put('third', '', 2000)]
  expect(puts).toEqual([false, true])
  await database.close()
})

test('sessions that had ended before an update of the service stay ended', async () => {
  await using folder = await makeFolder()
  const before = { ...accountTables, one_time: accountTables.one_time.slice(0, 1) }
  const old = new SqliteSql({ file: join(folder.path, 'auth.sqlite'), migrations: before })
  await old.run(sql`insert into ended_sessions values ('ended', null, 2000), ('kept', 'x', 2000)`)
  await old.close()

  const database = openAuthFile(folder.path)

  const oneTime = await OneTime.open(database, () => 1000)
  expect([...(oneTime.known?.keys() ?? [])]).toEqual(['ended'])
  await database.close()
})

test('replicas of before an update read which sessions have ended', async () => {
  await using shared = await makeDatabase()
  await new OneTime(shared.database, () => 1000).put('ended', '', 2000)

  const read = `select id, password, expires_at from ${schema}.ended_sessions where id = 'ended'`
  expect(await shared.database.query(read)).toEqual([{ id: 'ended', password: null, expires_at: 2000 }])
})
