import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ArchivedAccounts,
  ensurePrivateFile,
  int8,
  type Migrations,
  name,
  SqliteSql,
  type SqlTable,
  sql,
  strict,
} from '@domains-and-files/persistence'
import { services } from './api-tokens/token-format.ts'
import { listUsers, storeUser } from './users/sql-users.ts'
import { UserList } from './users/user.ts'

// Instants are milliseconds since 1970.

/** Tables of this package in PostgreSQL: spread them into the migrations of each service. */
export const authMigrations = {
  users: [
    sql`create table ${name('users')} (
      username text not null primary key,
      position ${int8} not null,
      definition text not null
    )`,
  ],
  api_tokens: [
    sql`create table ${name('api_tokens')} (
      id text not null primary key,
      -- The first half of the token's digest: the whole digest is compared in constant time.
      lookup text not null unique,
      owner text not null,
      owner_id text,
      name text not null,
      definition text not null,
      created_at ${int8} not null,
      expires_at ${int8},
      last_used_at ${int8},
      unique (owner, name)
    ) ${strict}`,
  ],
  sessions: [
    sql`create table ${name('last_logins')} (
      username text not null primary key,
      at ${int8} not null,
      -- Of a single sign-on.
      rights text
    ) ${strict}`,
  ],
  trusts: [
    sql`create table ${name('trusts')} (
      id text not null primary key,
      name text not null unique,
      issuer text not null,
      definition text not null,
      created_at ${int8} not null
    ) ${strict}`,
  ],
  one_time: [
    sql`create table ${name('one_time')} (
      id text not null primary key,
      value text not null,
      expires_at ${int8} not null
    ) ${strict};
    create index one_time_by_expiry on ${name('one_time')} (expires_at)`,
    sql`select 1`, // A migration of unreleased versions.
  ],
  login_attempts: [
    sql`create table ${name('login_attempts')} (
      attempt text not null,
      key text not null,
      is_running ${int8} not null,
      at ${int8} not null,
      primary key (attempt, key)
    ) ${strict};
    create index login_attempts_by_key on ${name('login_attempts')} (key, at);
    create index login_attempts_by_time on ${name('login_attempts')} (at)`,
  ],
} satisfies Migrations

/** Without PostgreSQL users are in a file, failed logins in memory, and the rest in `auth.sqlite` of DATA_DIR. */
const { users: _users, login_attempts, ...accountTables } = authMigrations

export const loginTables = { login_attempts }

const authFileName = 'auth.sqlite'

/** The data directory of a service: `npm start` gives each a folder in its DATA_DIR, which is there if one of both is. */
export function dataDirOf(service: string, env: NodeJS.ProcessEnv): string {
  const root = env.DATA_DIR || 'data'
  const hasFolders = !env.DATA_DIR || Object.keys(services).some((each) => existsSync(join(root, each)))
  return hasFolders ? join(root, service) : root
}

// What takes rights away must work on a full disk: it writes over this log, which is checkpointed before it grows.
const growLog = `pragma wal_autocheckpoint = 16; create table if not exists filler (bytes blob) strict;
  insert into filler values (zeroblob(262144)); drop table filler`

/** Opens the API tokens of a data directory, which commands and a running service share. */
export function openAuthFile(dataDir: string, migrations: Migrations = {}): SqliteSql {
  const file = join(dataDir, authFileName)
  ensurePrivateFile(file)
  const sql = new SqliteSql({ file, migrations: { ...accountTables, ...migrations } })
  try {
    sql.database.exec(growLog)
  } catch {
    // Another process writes, or the disk is full already.
  }
  return sql
}

/** Tables of this package in a backup, which has the users in the format of the users file. */
const authTables: SqlTable[] = [
  { name: 'api_tokens', key: ['id'] },
  { name: 'last_logins', key: ['username'] },
  { name: 'one_time', key: ['id'] },
  { name: 'trusts', key: ['id'] },
]

/** Accounts in a backup, beside `others`: further small tables that are in the same file of a data directory. */
export const archivedAccounts = (others: { tables: SqlTable[]; migrations: Migrations }): ArchivedAccounts => ({
  tables: [...authTables, ...others.tables],
  openFile(dataDir, isReadOnly) {
    if (!isReadOnly) return openAuthFile(dataDir, others.migrations)
    const file = join(dataDir, authFileName)
    return statSync(file, { throwIfNoEntry: false }) && new SqliteSql({ file, isReadOnly })
  },
  exportUsers: async (snapshot) => ({
    'users.json': `${JSON.stringify({ users: await listUsers(snapshot) }, null, 2)}\n`,
  }),
  async importUsers(transaction, { 'users.json': text = '{"users":[]}' }) {
    const { users } = UserList.parse(JSON.parse(String(text)))
    for (const user of users) await storeUser(transaction, user)
  },
})
