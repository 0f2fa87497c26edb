import { join } from 'node:path'
import { expect, test } from 'vitest'
import { backUp } from '../../../src/backup/backup.ts'
import { restoreIntoDatabase } from '../../../src/backup/postgres/restore-database.ts'
import { jobOf, makeDataDir, makeFolder, openStore, reopen } from '../../support/sample-service.ts'

test('a restore overwrites nothing', async () => {
  const outside = makeFolder()
  await backUp(jobOf(makeDataDir(1), join(outside, 'monday')))
  const { database, store } = await openStore()
  await database.query("insert into sample.users values ('eve')")

  const refused = restoreIntoDatabase(jobOf(outside, join(outside, 'monday')), store)

  await expect(refused).rejects.toThrow(
    'The table sample.users is not empty: a restore overwrites nothing.',
  )
})

test('another backup cannot continue an interrupted restore', async () => {
  const outside = makeFolder()
  const [monday, tuesday] = [join(outside, 'monday'), join(outside, 'tuesday')]
  await backUp(jobOf(makeDataDir(1), monday))
  await backUp(jobOf(makeDataDir(2), tuesday))
  const { store } = await openStore()
  const failing = { ...store, importDatabase: () => Promise.reject(new Error('stopped')) }
  await expect(restoreIntoDatabase(jobOf(outside, monday), failing)).rejects.toThrow('stopped')

  const refused = restoreIntoDatabase(jobOf(outside, tuesday), store)

  await expect(refused).rejects.toThrow('Another backup was being restored')
})

test('a restore under a running service is refused', async () => {
  const outside = makeFolder()
  await backUp(jobOf(makeDataDir(1), join(outside, 'monday')))
  const { url, store } = await openStore()
  const service = await reopen(url, false)
  const again = () => restoreIntoDatabase(jobOf(outside, join(outside, 'monday')), store)

  await expect(again()).rejects.toThrow('A service is using the schema sample: stop all replicas.')
  await service.database.close()
  expect((await again()).count).toBe(0)
})
