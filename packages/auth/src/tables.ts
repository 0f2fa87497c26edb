import { identity, int8, type Migrations, name, sql, strict } from '@domains-and-files/persistence'

/** API tokens: for the database of a service, or `auth.sqlite`. Instants are milliseconds. */
export const tokenTables = {
  api_tokens: [
    sql`create table ${name('api_tokens')} (
      position ${identity},
      id text not null unique,
      -- The first half of the token's digest: the whole digest is compared in constant time.
      lookup text not null unique,
      owner text not null,
      owner_id text,
      name text not null,
      definition text not null,
      expires_at ${int8},
      last_used_at ${int8},
      unique (owner, name)
    ) ${strict}`,
  ],
} satisfies Migrations

/** Attempts to log in. */
export const loginTables = {
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

/** What PostgreSQL holds of this package in the schema of each service: spread it into the migrations of the service. */
export const authMigrations = {
  users: [
    sql`create table ${name('users')} (
      position ${identity},
      username text not null unique,
      definition text not null
    )`,
  ],
  ...tokenTables,
  ...loginTables,
} satisfies Migrations
