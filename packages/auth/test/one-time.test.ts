import { expect, test } from 'vitest'
import { clockMarginMs, OneTime } from '../src/one-time.ts'
import { openAuthFile } from '../src/open-auth.ts'
import { SessionEndings } from '../src/sessions/session-tokens.ts'
import { makeFolder } from './support/start.ts'

test('what was used stays used after a restart, until it has expired by the clocks of all replicas', async () => {
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
  clock.ms += clockMarginMs
  expect(await put()).toBe(true)
})

test('a session that has ended stays ended after a restart, although a replica with a fast clock ended another', async () => {
  await using folder = await makeFolder()
  const ending = { id: 'session', password: null, expires_at: 2000 }
  const open = async (nowMs: number) => {
    const database = openAuthFile(folder.path)
    const users = { find: async () => undefined }
    return { database, endings: await SessionEndings.open({ database, users, now: () => nowMs }) }
  }
  const before = await open(60_000)
  await before.endings.add(ending)
  await before.endings.add({ ...ending, id: 'other' })
  await before.database.close()
  const after = await open(1000)

  expect((await after.endings.find('session', 'vera')).ending).toEqual(ending)
  await after.database.close()
})
