import { statSync } from 'node:fs'
import { join } from 'node:path'
import {
  type DataPlaces,
  type PrivateFiles,
  type Row,
  readPrivateFiles,
  readTables,
  type Sql,
  SqliteSql,
  type SqlTable,
  type SqlTransaction,
  sql,
  type Table,
  writeRows,
} from '@domains-and-files/persistence'
import { authFileName } from './open-auth.ts'
import { listUsers, storeUser } from './users/sql-users.ts'
import { UserList } from './users/user.ts'

interface AuthArchive {
  tables: Table[]
  files: PrivateFiles
}

const accountTables: SqlTable[] = [
  { name: 'api_tokens', key: ['id'] },
  { name: 'last_logins', key: ['username'] },
  { name: 'one_time', key: ['id'] },
  { name: 'trusts', key: ['id'] },
]
const usersFileName = 'users.json'

/** Reads the users, API tokens, sessions, the secret and these `others` beside the tokens of a data directory. */
export async function readAuthFolder<T>(
  places: DataPlaces,
  work: (archive: AuthArchive) => Promise<T>,
  others: SqlTable[] = [],
): Promise<T> {
  const files = await readPrivateFiles(places)
  const file = join(places.dataDir, authFileName)
  if (!statSync(file, { throwIfNoEntry: false })) return work({ tables: [], files })
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file, isReadOnly: true })
  stack.defer(() => database.close())
  return await database.snapshot(async (snapshot) => {
    const stored = await snapshot.all<{ name: string }>(sql`select name from sqlite_schema`)
    const isStored = (table: SqlTable) => stored.some((each) => each.name === table.name)
    const tables = [...accountTables, ...others].filter(isStored)
    return work({ tables: readTables(snapshot, tables), files })
  })
}

/** Reads users, API tokens and sessions from PostgreSQL. Users are returned in the format of the users file. */
export async function readAuthSchema(
  snapshot: SqlTransaction,
  others: SqlTable[] = [],
): Promise<AuthArchive> {
  const users = await listUsers(snapshot)
  const text = `${JSON.stringify({ users }, null, 2)}\n`
  const tables = readTables(snapshot, [...accountTables, ...others])
  return { tables, files: { [usersFileName]: text } }
}

/** Restores rows of a table of this package, and returns true; false for any other table. */
export async function writeAuthRows(
  database: Sql,
  { table, rows }: { table: string; rows: Row[] },
  others: SqlTable[],
): Promise<boolean> {
  if (table === 'ended_sessions') return true // In backups of earlier versions: sessions that ended then.
  const isOwn = [...accountTables, ...others].some(({ name: own }) => own === table)
  if (isOwn) await writeRows(database, table, rows)
  return isOwn
}

/** Stores the users of a users file in PostgreSQL. */
export async function importUsers(
  transaction: SqlTransaction,
  { [usersFileName]: text = '{"users":[]}' }: PrivateFiles,
): Promise<void> {
  const { users } = UserList.parse(JSON.parse(String(text)))
  for (const user of users) await storeUser(transaction, user)
}
