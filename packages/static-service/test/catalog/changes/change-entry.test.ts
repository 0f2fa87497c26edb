import { join } from 'node:path'
import { eventMigrations } from '@domains-and-files/events'
import { name, SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { recordUsedUp } from '../../../src/catalog/changes/change-entry.ts'
import { makeFolder } from '../../support/catalogs.ts'

test('a link that is used up is an event once, although a process ended before it remembered that', async () => {
  const file = join(makeFolder(), 'events.sqlite')
  const database = new SqliteSql({ file, migrations: eventMigrations, now: Date.now })
  onTestFinished(() => database.close())
  const links = ['one', 'other'].map((id) => ({
    id,
    path: 'docs/1.txt',
    name: null,
    maker: 'user:editor',
    by: 'editor',
    createdAt: 1,
    expiresAt: 2,
    downloadsLeft: 0,
  }))

  for (const used of [links.slice(0, 1), links, links])
    await database.transaction((transaction) => recordUsedUp({ transaction }, used))

  const events = await database.all<{ data: string }>(sql`select data from ${name('events')} order by id`)
  expect(events.map(({ data }) => JSON.parse(data))).toEqual(links)
})
