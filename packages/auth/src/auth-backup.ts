import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { name, SqliteSql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { authFileName } from './open-auth.ts'
import { accountTables } from './tables.ts'
import { UserList } from './users/user.ts'

const usersFileName = 'users.json'
const [users, tokens] = [name('users'), name('api_tokens')]

/** The users and API tokens in PostgreSQL as the files in which a data directory holds them, by name. */
export async function exportAuthFiles(snapshot: SqlTransaction) {
  const rows = await snapshot.all<{ definition: string }>(
    sql`select definition from ${users} order by position`,
  )
  const list = rows.map(({ definition }) => JSON.parse(definition))
  const memory = new SqliteSql({ file: ':memory:', migrations: accountTables })
  await memory.transaction((transaction) => copyTokens(snapshot, transaction))
  const bytes = memory.database.serialize()
  await memory.close()
  return { [usersFileName]: `${JSON.stringify({ users: list }, null, 2)}\n`, [authFileName]: bytes }
}

/** Stores the users of such files, and the API tokens of the one in the folder `from`. */
export async function importAuthFiles(
  transaction: SqlTransaction,
  files: Record<string, string>,
  from: string,
) {
  const { users: found } = UserList.parse(JSON.parse(files[usersFileName] ?? '{"users":[]}'))
  for (const [position, user] of found.entries()) {
    await transaction.run(
      sql`insert into ${users} (username, position, definition)
        values (${user.username}, ${position}, ${JSON.stringify(user)})`,
    )
  }
  const file = join(from, authFileName)
  if (!existsSync(file)) return
  const database = new SqliteSql({ file, isReadOnly: true })
  await copyTokens(database, transaction)
  await database.close()
}

interface TokenRow {
  id: string
  lookup: string
  owner: string
  owner_id: string | null
  name: string
  definition: string
  created_at: number
  expires_at: number | null
  last_used_at: number | null
}

async function copyTokens(from: SqlTransaction, to: SqlTransaction) {
  const columns = sql`id, lookup, owner, owner_id, name, definition, created_at, expires_at, last_used_at`
  const rows = await from.all<TokenRow>(sql`select ${columns} from ${tokens} order by created_at`)
  for (const row of rows) {
    await to.run(
      sql`insert into ${tokens} (${columns}) values (${row.id}, ${row.lookup}, ${row.owner},
        ${row.owner_id}, ${row.name}, ${row.definition}, ${row.created_at}, ${row.expires_at}, ${row.last_used_at})`,
    )
  }
}
