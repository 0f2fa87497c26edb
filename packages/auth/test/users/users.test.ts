import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { makeDummyHash, parsePhc } from '../../src/login/password.ts'
import { FileUsers } from '../../src/users/file-users.ts'
import { SqlUsers } from '../../src/users/sql-users.ts'
import type { User, Users } from '../../src/users/user.ts'
import { makeDatabase, schema } from '../support/database.ts'
import { makeFolder, makeUser } from '../support/start.ts'

interface Backend extends AsyncDisposable {
  store: Users
  openUsers: () => Users
}

const backends: [string, () => Promise<Backend>][] = [
  [
    'a file',
    async () => {
      const folder = await makeFolder()
      const openUsers = () => new FileUsers(join(folder.path, 'users.json'), () => undefined)
      return { store: openUsers(), openUsers, ...folder }
    },
  ],
  [
    'PostgreSQL',
    async () => {
      const { database, ...rest } = await makeDatabase()
      const users = new SqlUsers(database)
      return { store: users, openUsers: () => users, ...rest }
    },
  ],
]

const adam = await makeUser('adam', { role: 'admin', id: '1' })
const vera = await makeUser('vera', { domains: ['example.com'] })

describe.each(backends)('users in %s', async (_name, open) => {
  const { store, openUsers, ...backend } = await open()
  afterAll(() => backend[Symbol.asyncDispose]())
  beforeEach(() => store.update(() => [adam, vera]))

  test('are found by their exact name, with their rights', async () => {
    const users = openUsers()

    expect(await users.find('vera')).toEqual(vera)
    expect(await users.find('Vera')).toBeUndefined()
  })

  test('are listed in the order of their addition', async () => {
    const edda = await makeUser('a-late-user')

    await store.update((users) => [...users, edda])

    expect(await store.list()).toEqual([adam, vera, edda])
  })

  test('a change is seen at the next look-up', async () => {
    const users = openUsers()
    await users.find('vera')

    await store.update(([first, second]) => changeRole([first, second], 'editor'))

    expect((await users.find('vera'))?.role).toBe('editor')
    expect(await users.find('adam')).toEqual(adam)
  })

  test('a removed user is not found', async () => {
    await store.update((users) => users.filter(({ username }) => username !== 'vera'))

    expect(await openUsers().find('vera')).toBeUndefined()
  })

  test('nothing changes if a change throws, or names a user twice', async () => {
    const stop = () => {
      throw new Error('stop')
    }

    await expect(store.update(stop)).rejects.toThrow('stop')
    await expect(store.update((users) => [...users, adam])).rejects.toThrow('twice')

    expect(await store.list()).toEqual([adam, vera])
  })

  test('no change is lost when several are made at once', async () => {
    const added = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => makeUser(name)))

    await Promise.all(added.map((user) => store.update((users) => [...users, user])))

    expect((await store.list()).map(({ username }) => username).sort()).toEqual(
      ['a', 'adam', 'b', 'c', 'd', 'e', 'vera'].sort(),
    )
  })

  test('a login of an unknown user can have the hash cost of the first one', async () => {
    const { password } = (await openUsers().first()) ?? {}

    const dummy = makeDummyHash(password)

    expect(password).toBe(adam.password)
    expect(parsePhc(dummy)?.cost).toEqual(parsePhc(adam.password ?? '')?.cost)
    expect(dummy).not.toBe(adam.password)
  })
})

test('in PostgreSQL a change of one user rewrites no other row', async () => {
  await using shared = await makeDatabase()
  const users = new SqlUsers(shared.database)
  await users.update(() => [adam, vera])
  const writers = async () =>
    (await shared.database.query(`select xmin::text as writer from ${schema}.users order by position`)) as {
      writer: string
    }[]
  const before = await writers()

  await users.update(([first, second]) => changeRole([first, second], 'editor'))

  const after = await writers()
  expect(after[0]).toEqual(before[0])
  expect(after[1]).not.toEqual(before[1])
})

const changeRole = (users: (User | undefined)[], role: User['role']): User[] =>
  users.flatMap((user) => (user ? [user.username === 'vera' ? { ...user, role } : user] : []))
