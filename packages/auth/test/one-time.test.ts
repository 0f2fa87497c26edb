import { expect, test } from 'vitest'
import { OneTime } from '../src/one-time.ts'
import { openAuthFile } from '../src/open-auth.ts'
import { makeFolder } from './support/start.ts'

test('what was used stays used after a restart, until it expires', async () => {
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
  expect(await put()).toBe(true)
})
