import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { backUp } from '../../../src/backup/backup.ts'
import { restoreIntoDatabase } from '../../../src/backup/postgres/restore-database.ts'
import { jobOf, layout, makeDataDir, makeFolder, openStore } from '../../support/sample-service.ts'

test('an altered backup is not restored into PostgreSQL', async () => {
  const outside = makeFolder()
  await backUp(jobOf(makeDataDir(1), join(outside, 'monday')))
  fs.appendFileSync(join(outside, 'monday', layout.database), 'x')
  const { database, store } = await openStore()

  const refused = restoreIntoDatabase(jobOf(outside, join(outside, 'monday')), store)

  await expect(refused).rejects.toThrow('has been altered')
  expect(await database.query('select 1 from sample.items')).toEqual([])
})
