import { int8, name, sql, strict } from '@domains-and-files/persistence'

/** Rules of folders, and links: in PostgreSQL, or beside the API tokens in DATA_DIR. */
export const sharingTables = [
  sql`create table ${name('access_rules')} (
    prefix text not null primary key,
    is_public ${int8} not null,
    by_user text not null,
    at text not null
  ) ${strict};
  -- One row: replicas compare it with the rules that they have.
  create table ${name('access_version')} (version ${int8} not null) ${strict};
  insert into ${name('access_version')} values (0)`,
  sql`create table ${name('links')} (
    id text not null primary key,
    digest text not null unique, -- SHA-256 of the token
    path text not null,
    name text,
    maker text not null,
    by_user text not null,
    created_at ${int8} not null,
    expires_at ${int8} not null,
    downloads_left ${int8},
    used_up_at ${int8} -- when the last download began; null once its event is recorded
  ) ${strict};
  -- Downloads of limited links that are under way: later ranges of the file belong to them.
  create table ${name('link_downloads')} (
    link text not null,
    path text not null,
    until ${int8} not null,
    primary key (link, path)
  ) ${strict}`,
  sql`select used_up_at from ${name('links')} limit 0`, // A migration of unreleased versions.
]

/** The sharing tables in a backup. */
export const sharedTables = [
  { name: 'access_rules', key: ['prefix'] },
  { name: 'links', key: ['id'] },
]
