import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { fold } from '../../../src/catalog/fold.ts'
import { databaseFile, openDatabase, openReader } from '../../../src/catalog/sqlite/database.ts'
import { migrations } from '../../../src/catalog/sqlite/migrations.ts'
import { bodyOf } from '../../../src/catalog/sqlite/search/trigrams.ts'
import { SqliteCatalog } from '../../../src/catalog/sqlite/sqlite-catalog.ts'
import { makeFolder } from '../../support/catalogs.ts'

test.each(['writing', 'reading'])(
  'every commit waits for the disk, also after reopening: %s',
  (kind) => {
    const file = join(makeFolder(), 'x.sqlite')
    const first = openDatabase(file)
    const atFirst = first.pragma('synchronous', { simple: true })
    first.close()

    const again = kind === 'writing' ? openDatabase(file) : openReader(file)
    const settings = ['synchronous', 'journal_mode'].map((name) =>
      again.pragma(name, { simple: true }),
    )
    again.close()

    expect([atFirst, ...settings]).toEqual([2, 2, 'wal'])
  },
)

test('a database of a newer version is left alone', () => {
  const file = join(makeFolder(), 'x.sqlite')
  const db = openDatabase(file)
  db.pragma('user_version = 99')
  db.close()

  expect(() => openDatabase(file)).toThrow('is of a newer version of this service')
})

test('a database of the first schema is brought up to date, and its files are found', async () => {
  const folder = makeFolder()
  const db = new Sqlite(databaseFile(folder))
  db.exec(migrations[0] ?? '')
  db.pragma('user_version = 1')
  const insert = db.prepare(
    `insert into files values (?, 1, ?, ?, ?, '00', 1, 'text/plain', 'document', 'tester', '2026', '2026')`,
  )
  for (const [at, path] of ['plain.txt', 'straße.txt'].entries()) {
    insert.run(at + 1, path, path, fold(path))
    db.prepare('insert into grams (rowid, body) values (?, ?)').run(
      at + 1,
      bodyOf(fold(path), 'document'),
    )
  }
  db.close()

  const catalog = await SqliteCatalog.open(folder)
  onTestFinished(() => catalog.close())
  const found = await Promise.all(
    ['PLAIN', 'STRASSE'].map((search) =>
      catalog.list({ search, sort: 'path', page: 1, pageSize: 3 }),
    ),
  )

  expect(found.map(({ rows }) => rows.map(({ path }) => path))).toEqual([
    ['plain.txt'],
    ['straße.txt'],
  ])
})
