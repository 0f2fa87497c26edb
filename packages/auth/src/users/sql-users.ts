import { isDeepStrictEqual } from 'node:util'
import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { makeDummyHash } from '../login/password.ts'
import { changeUsers, isActive, User, type Users } from './user.ts'

interface Row {
  definition: string
}

export const usersTable = name('users')

/** Users in PostgreSQL. Each look-up reads the table, so a change takes effect on every replica at once. */
export class SqlUsers implements Users {
  readonly name: string
  readonly #database: Sql

  constructor(database: Sql & { schema: string }) {
    this.name = `the database, schema ${database.schema}`
    this.#database = database
  }

  async find(username: string) {
    const row = await this.#database.get<Row>(
      sql`select definition from ${usersTable} where username = ${username}`,
    )
    return row && activeUserOf(row)
  }

  // One query either way: response time must not reveal whether the user exists.
  async findLogin(username: string) {
    const rows = await this.#database.all<Row>(
      sql`select definition from ${usersTable} where username = ${username}
        or position = (select min(position) from ${usersTable})`,
    )
    const found = rows.map(userOf)
    const user = found.find((each) => each.username === username)
    return { user, hash: user?.password ?? makeDummyHash(found[0]?.password) }
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
        if (!before.some((each) => isDeepStrictEqual(each, user)))
          await storeUser(transaction, user)
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
