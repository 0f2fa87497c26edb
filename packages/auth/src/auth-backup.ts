import { statSync } from 'node:fs'
import { join } from 'node:path'
import {
  type DataPlaces,
  type PrivateFiles,
  readPrivateFiles,
  readTables,
  SqliteSql,
  type SqlTable,
  type SqlTransaction,
  sql,
  type Table,
} from '@domains-and-files/persistence'
import { authFileName } from './open-auth.ts'
import { listUsers, storeUser } from './users/sql-users.ts'
import { UserList } from './users/user.ts'

/** Tables of this package in a backup, which has the users in the format of the users file. */
export const authTables: SqlTable[] = [
  { name: 'api_tokens', key: ['id'] },
  { name: 'last_logins', key: ['username'] },
  { name: 'one_time', key: ['id'] },
  { name: 'trusts', key: ['id'] },
]

/** Reads `tables` of the file of API tokens in a data directory, its users and its secret. */
export async function readAuthFolder<T>(
  places: DataPlaces,
  tables: SqlTable[],
  work: (tables: Table[], files: PrivateFiles) => Promise<T>,
): Promise<T> {
  const files = await readPrivateFiles(places)
  const file = join(places.dataDir, authFileName)
  if (!statSync(file, { throwIfNoEntry: false })) return work([], files)
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file, isReadOnly: true })
  stack.defer(() => database.close())
  return await database.snapshot(async (snapshot) => {
    const stored = await snapshot.all<{ name: string }>(sql`select name from sqlite_schema`)
    const isStored = (table: SqlTable) => stored.some((each) => each.name === table.name)
    return work(readTables(snapshot, tables.filter(isStored)), files)
  })
}

/** The users in PostgreSQL as a users file. */
export const exportUsers = async (snapshot: SqlTransaction): Promise<PrivateFiles> => ({
  'users.json': `${JSON.stringify({ users: await listUsers(snapshot) }, null, 2)}\n`,
})

/** Stores the users of a users file in PostgreSQL. */
export async function importUsers(
  transaction: SqlTransaction,
  { 'users.json': text = '{"users":[]}' }: PrivateFiles,
): Promise<void> {
  const { users } = UserList.parse(JSON.parse(String(text)))
  for (const user of users) await storeUser(transaction, user)
}
