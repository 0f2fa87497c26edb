import { SqliteSql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { lossyDatabase } from '../../../../test/support/lossy-database.ts'
import { AccessRules } from '../../src/sharing/access-rules.ts'
import { sharingTables } from '../../src/sharing/tables.ts'

const by = { by: 'admin', at: '2027-01-15T09:30:00.000Z' }

test('a rule that is stored counts, though the database is lost right after the commit', async () => {
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables } })
  stack.defer(() => database.close())
  const { sql, losing } = lossyDatabase(database)
  const rules = await AccessRules.open(sql, { isPublicByDefault: true, isExclusive: true })

  await losing(() => rules.set({ prefix: 'drafts/', public: false, ...by }))
  const whileSet = rules.isPublic('drafts/a.txt')
  await losing(() => rules.remove('drafts/'))

  expect([whileSet, rules.isPublic('drafts/a.txt')]).toEqual([false, true])
})
