import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { backUp } from '../../../src/backup/backup.ts'
import { restoreIntoDatabase } from '../../../src/backup/postgres/restore-database.ts'
import { restore } from '../../../src/backup/restore.ts'
import { jobOf, makeDataDir, makeFolder, openStore, rowsIn } from '../../support/sample-service.ts'

test('a backup goes from a directory into PostgreSQL, and from there into a directory, unchanged', async () => {
  const dataDir = makeDataDir(1200)
  const outside = makeFolder()
  const { database, store } = await openStore()

  await backUp(jobOf(dataDir, join(outside, 'first')))
  await restoreIntoDatabase(jobOf(join(outside, 'tmp'), join(outside, 'first')), store)
  await backUp(jobOf(join(outside, 'tmp'), join(outside, 'second'), { store }))
  await restore(jobOf(join(outside, 'copy'), join(outside, 'second')))

  expect(rowsIn(join(outside, 'copy'))).toEqual(rowsIn(dataDir))
  expect(rowsIn(dataDir).items).toHaveLength(1200)
  expect(fs.readFileSync(join(outside, 'copy/users.json'), 'utf8')).toBe('["adam"]')
  const added = await database.transaction((transaction) =>
    transaction.query("insert into sample.items (bytes) values ('') returning id, at"),
  )
  expect(added).toEqual([{ id: 1202, at: 7 }])
  expect(fs.readdirSync(join(outside, 'tmp'))).toEqual([])
})
