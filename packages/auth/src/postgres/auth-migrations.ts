/** The tables of this package, in the schema of a service. For `Postgres.open`, as the part `auth`. */
export const authMigrations = (schema: string): string[] => [
  `create table ${schema}.users (
    username text collate "C" primary key,
    position bigint generated always as identity,
    definition jsonb not null
  )`,
  `create table ${schema}.api_tokens (
    id uuid primary key,
    position bigint generated always as identity,
    digest bytea not null unique,
    owner text collate "C" not null,
    definition jsonb not null,
    expires_at timestamptz,
    last_used_at timestamptz
  );
  create index on ${schema}.api_tokens (owner)`,
  `create table ${schema}.login_attempts (
    attempt uuid not null,
    key text collate "C" not null,
    is_running boolean not null,
    at timestamptz not null,
    primary key (attempt, key)
  );
  create index on ${schema}.login_attempts (key, at);
  create index on ${schema}.login_attempts (at)`,
]
