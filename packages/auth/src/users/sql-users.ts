import { isDeepStrictEqual } from 'node:util'
import { list, name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { Rights } from '../rights.ts'
import { changeUsers, isActive, User, type Users } from './user.ts'

interface Row {
  definition: string
}

export const usersTable = name('users')
const loginsTable = name('last_logins')

/** Users in PostgreSQL. Each look-up reads the table, so a change takes effect on every replica at once. */
export class SqlUsers implements Users {
  readonly name: string
  readonly #database: Sql

  constructor(database: Sql & { schema: string }) {
    this.name = `the database, schema ${database.schema}`
    this.#database = database
  }

  async find(username: string) {
    const row = await this.#database.get<Row>(sql`select definition from ${usersTable} where username = ${username}`)
    return row && activeUserOf(row)
  }

  async first() {
    const row = await this.#database.get<Row>(sql`select definition from ${usersTable} order by position limit 1`)
    return row && userOf(row)
  }

  list() {
    return listUsers(this.#database)
  }

  async update(change: (users: User[]) => User[]) {
    await this.#database.transaction(async (transaction) => {
      await transaction.run(sql`lock table ${usersTable} in share row exclusive mode`)
      const before = await listUsers(transaction)
      const after = changeUsers(before, change)
      for (const { username } of before)
        if (!after.some((user) => user.username === username))
          await transaction.run(sql`delete from ${usersTable} where username = ${username}`)
      for (const user of after)
        if (!before.some((each) => isDeepStrictEqual(each, user))) await storeUser(transaction, user)
    })
  }
}

/** Adds a user at the end, or changes it. */
export const storeUser = (transaction: SqlTransaction, user: User) =>
  transaction.run(
    sql`insert into ${usersTable} (username, position, definition)
      select ${user.username}, coalesce(max(position), 0) + 1, ${JSON.stringify(user)} from ${usersTable}
      on conflict (username) do update set definition = excluded.definition`,
  )

export async function listUsers(reader: SqlTransaction): Promise<User[]> {
  const rows = await reader.all<Row>(sql`select definition from ${usersTable} order by position`)
  return rows.map(userOf)
}

/** The user of a row; undefined if it is barred. */
export function activeUserOf(row: Row): User | undefined {
  const user = userOf(row)
  return isActive(user) ? user : undefined
}

const userOf = ({ definition }: Row): User => User.parse(JSON.parse(definition))

/** The last login of a user to this service. API tokens have the rights that single sign-on granted until the next one. */
interface LastLogin {
  username: string
  /** Milliseconds since 1970. */
  at: number
  rights?: Pick<Rights, 'role' | 'domains' | 'folders'>
}

export async function recordLogin(database: Sql, { username, at, rights }: LastLogin) {
  await database.run(
    sql`insert into ${loginsTable} (username, at, rights)
      values (${username}, ${at}, ${rights ? JSON.stringify(rights) : null})
      on conflict (username) do update set at = excluded.at, rights = excluded.rights`,
  )
}

/** Last logins by username; a user who never logged in is absent. */
export async function findLogins(database: Sql, users: Pick<User, 'username'>[]) {
  const usernames = users.map(({ username }) => username)
  const rows = await database.all<{ username: string; at: number; rights: string | null }>(
    sql`select username, at, rights from ${loginsTable} where username in (${list(usernames)})`,
  )
  return new Map(
    rows.map(({ rights, ...row }): [string, LastLogin] => [
      row.username,
      { ...row, ...(rights !== null && { rights: JSON.parse(rights) }) },
    ]),
  )
}
