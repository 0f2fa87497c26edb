import { name, SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, test, vi } from 'vitest'
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

test('of two loads at once the newer rules count, though the older ones arrive last', async () => {
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables } })
  stack.defer(() => database.close())
  const options = { isPublicByDefault: true, isExclusive: false }
  const other = await AccessRules.open(database, options)
  const rules = await AccessRules.open(database, options)
  const versions: number[] = []
  rules.onChange = () => versions.push(rules.version)
  const [wasRead, mayArrive] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const read = database.all.bind(database)
  vi.spyOn(database, 'all').mockImplementationOnce(async (statement) => {
    const rows = await read(statement)
    wasRead.resolve()
    await mayArrive.promise
    return rows
  })

  await other.set({ prefix: 'drafts/', public: true, ...by })
  const older = rules.catchUp(other.version)
  await wasRead.promise
  await other.set({ prefix: 'drafts/', public: false, ...by })
  await rules.catchUp(other.version)
  mayArrive.resolve()
  await older

  expect([versions, rules.isPublic('drafts/a.txt')]).toEqual([[other.version], false])
})

test('a refresh finds what another replica has changed before, and those that begin together share a query', async () => {
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables } })
  stack.defer(() => database.close())
  const options = { isPublicByDefault: true, isExclusive: false }
  const other = await AccessRules.open(database, options)
  const rules = await AccessRules.open(database, options)
  const queries = vi.spyOn(database, 'get')

  await other.set({ prefix: 'drafts/', public: false, ...by })
  await Promise.all([rules.refresh(), rules.refresh()])
  const whileSet = rules.isPublic('drafts/a.txt')
  await other.remove('drafts/')
  await rules.refresh()

  expect([whileSet, rules.isPublic('drafts/a.txt')]).toEqual([false, true])
  expect(queries).toHaveBeenCalledTimes(2)
})

test('a database that has lost the last change takes it back everywhere, and the next one counts', async () => {
  await using stack = new AsyncDisposableStack()
  let time = Date.now()
  const now = () => {
    time += 1
    return time
  }
  const migrations = { sharing: sharingTables }
  const database = new SqliteSql({ file: ':memory:', migrations, now })
  stack.defer(() => database.close())
  const options = { isPublicByDefault: true, isExclusive: false }
  const rules = await AccessRules.open(database, options)
  await rules.set({ prefix: 'kept/', public: false, ...by })
  const { version } = rules
  await rules.set({ prefix: 'lost/', public: false, ...by })
  const other = await AccessRules.open(database, options)

  await database.run(sql`update ${name('access_version')} set version = ${version}`)
  await database.run(sql`delete from ${name('access_rules')} where prefix = 'lost/'`)
  const listed = await rules.list()
  await rules.set({ prefix: 'drafts/', public: false, ...by })
  await other.refresh()

  expect(listed.map(({ prefix }) => prefix)).toEqual(['kept/'])
  for (const each of [rules, other]) {
    const paths = ['kept/a', 'lost/a', 'drafts/a']
    expect(paths.map((path) => each.isPublic(path))).toEqual([false, true, false])
  }
})

test('each of several changes within a millisecond reaches the other replicas', async () => {
  await using stack = new AsyncDisposableStack()
  const now = () => Date.parse(by.at)
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables }, now })
  stack.defer(() => database.close())
  const options = { isPublicByDefault: true, isExclusive: false }
  const other = await AccessRules.open(database, options)
  const rules = await AccessRules.open(database, options)

  const seen = []
  for (const isPublic of [false, true, false]) {
    await other.set({ prefix: 'drafts/', public: isPublic, ...by })
    await rules.refresh()
    seen.push(rules.isPublic('drafts/a.txt'))
  }

  expect(seen).toEqual([false, true, false])
})

test('rules are listed by prefix, as they were set last', async () => {
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file: ':memory:', migrations: { sharing: sharingTables } })
  stack.defer(() => database.close())
  const rules = await AccessRules.open(database, { isPublicByDefault: true, isExclusive: true })
  const [first, last] = [
    { prefix: 'drafts/', public: true, ...by },
    { prefix: 'site/', public: true, by: 'other', at: '2027-01-15T10:00:00.000Z' },
  ]

  await rules.set({ ...last, public: false, ...by })
  await rules.set(first)
  await rules.set(last)

  expect(await rules.list()).toEqual([first, last])
})
