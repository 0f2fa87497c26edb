import { join } from 'node:path'
import { expect, test } from 'vitest'
import { backUp } from '../../../src/backup/backup.ts'
import { restoreIntoDatabase } from '../../../src/backup/postgres/restore-database.ts'
import { type DatabaseStore, importTables } from '../../../src/index.ts'
import {
  jobOf,
  makeDataDir,
  makeFolder,
  openStore,
  reopen,
  tables,
} from '../../support/sample-service.ts'

test('an interrupted restore keeps services from starting, and is resumed where it stopped', async () => {
  const dataDir = makeDataDir(2200)
  const outside = makeFolder()
  const backup = join(outside, 'monday')
  await backUp(jobOf(dataDir, backup))
  const { url, database, store } = await openStore()
  const controller = new AbortController()
  const interrupting: DatabaseStore = {
    ...store,
    importDatabase: (job) =>
      importTables(tables, { ...job, onProgress: (done) => done > 0.4 && controller.abort() }),
  }

  const { signal } = controller
  const interrupted = restoreIntoDatabase(jobOf(outside, backup, { signal }), interrupting)
  await expect(interrupted).rejects.toThrow('aborted')
  const [before] = await database.query('select count(*) from sample.items')
  await expect(reopen(url, false)).rejects.toThrow('was interrupted: run it again')
  const inserts: number[] = []
  await restoreIntoDatabase(jobOf(outside, backup), {
    ...store,
    importDatabase: (job) =>
      importTables(tables, { ...job, onProgress: (done) => void inserts.push(done) }),
  })

  expect(before).toEqual({ count: 1000 })
  expect(inserts).toHaveLength(4) // 500, 500, 200 items and the pages.
  expect(await database.query('select count(*) from sample.items')).toEqual([{ count: 2200 }])
  const service = await reopen(url, false)
  expect(service.database.isAvailable).toBe(true)
})
