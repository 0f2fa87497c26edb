import { expect, test } from 'vitest'
import { openAuthFile } from '../src/auth-database.ts'
import { OneTime } from '../src/one-time.ts'
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
