import type { Postgres, Transaction } from '@domains-and-files/persistence'
import { makeDummyHash } from '../users/dummy-hash.ts'
import { changeUsers, User } from '../users/user.ts'
import type { UserStore, Users } from '../users/users.ts'

interface Row {
  definition: unknown
}

/** Users in PostgreSQL, read for each look-up: a change counts on every replica at once. */
export class PostgresUsers implements Users, UserStore {
  readonly name: string
  readonly #database: Postgres
  readonly #table: string
  /** Matches no password, and costs as much as `real`. */
  #dummy: { real: string | undefined; hash: string } | undefined

  constructor(database: Postgres) {
    this.name = `the database, schema ${database.schema}`
    this.#database = database
    this.#table = `${database.schema}.users`
  }

  async find(username: string) {
    const rows = await this.#database.query<Row>(
      `select definition from ${this.#table} where username = $1`,
      [username],
    )
    return rows.map(userOf)[0]
  }

  // One query whether the user exists or not: the response time does not tell.
  async findLogin(username: string) {
    const rows = await this.#database.query<Row>(
      `(select definition, 0 as rank from ${this.#table} where username = $1)
      union all
      (select definition, 1 from ${this.#table} order by position limit 1)
      order by rank`,
      [username],
    )
    const found = rows.map(userOf)
    const user = found.length === 2 ? found[0] : undefined
    const real = found.at(-1)?.password
    if (!this.#dummy || this.#dummy.real !== real) this.#dummy = { real, hash: makeDummyHash(real) }
    return { user, hash: user?.password ?? this.#dummy.hash }
  }

  async list() {
    return listUsers(this.#database, this.#table)
  }

  async update(change: (users: User[]) => User[]) {
    await this.#database.transaction(async (transaction) => {
      await transaction.query(`lock table ${this.#table} in share row exclusive mode`)
      const before = await listUsers(transaction, this.#table)
      const after = changeUsers(before, change)
      await replaceUsers(transaction, this.#table, { before, after })
    })
  }
}

async function listUsers(reader: Pick<Transaction, 'query'>, table: string): Promise<User[]> {
  const rows = await reader.query<Row>(`select definition from ${table} order by position`)
  return rows.map(userOf)
}

async function replaceUsers(
  transaction: Transaction,
  table: string,
  { before, after }: { before: User[]; after: User[] },
) {
  const names = after.map(({ username }) => username)
  await transaction.query(`delete from ${table} where username <> all($1)`, [names])
  for (const user of after.filter((each) => !before.includes(each))) {
    await transaction.query(
      `insert into ${table} (username, definition) values ($1, $2)
      on conflict (username) do update set definition = excluded.definition`,
      [user.username, user],
    )
  }
}

const userOf = ({ definition }: Row): User => User.parse(definition)
