import { join } from 'node:path'
import { migrate } from '@domains-and-files/persistence'
import Database from 'better-sqlite3'
import { registerConversions } from './sqlite/first-history.ts'

export type { Database }

// Each brings the schema from its number to the next; append only.
const migrations = [
  `create table changes (
     id integer primary key autoincrement,
     domain text not null,
     at text not null,
     by text not null,
     request_id text not null,
     added text not null,
     removed text not null,
     kept integer not null,
     before text not null,
     after text not null
   ) strict;
   create index changes_of_domain on changes (domain, id desc);
   create table calls (at integer not null) strict;
   create index calls_at on calls (at);`,
  "alter table calls add column priority text not null default 'write'",
  `create table domain_list_passes (
     id integer primary key autoincrement,
     account text not null,
     started_at integer not null,
     completed_at integer,
     total integer
   ) strict;
   create table domain_list_pages (
     pass integer not null,
     page integer not null,
     entries text not null,
     primary key (pass, page)
   ) strict, without rowid;`,

  // The ledger. Large columns stand last: a list does not read past the small ones.
  `alter table changes rename to first_changes;
   drop index changes_of_domain;
   create table zones (digest text primary key, snapshot blob not null) strict;
   create table sends (
     id integer primary key autoincrement,
     domain text not null,
     state text not null,
     base text not null,
     zone text not null,
     found text,
     started_at integer not null,
     ended_at integer,
     given_up_at integer,
     repaired_at integer
   ) strict;
   create index sends_of_domain on sends (domain, id desc);
   create index unsettled_sends on sends (state) where state in ('open', 'unknown', 'unverified');
   create index given_up_sends on sends (given_up_at) where given_up_at is not null;
   create table changes (
     id integer primary key autoincrement,
     domain text not null,
     status text not null,
     by text not null,
     token text,
     request_id text not null,
     reason text,
     is_async integer not null,
     verified integer not null,
     created_at integer not null,
     sent_at integer,
     ended_at integer,
     send_id integer,
     before text,
     after text,
     email_type_before text,
     email_type_after text,
     idempotency_key text,
     fingerprint text,
     warnings text not null,
     problem text,
     summary text,
     delta blob,
     request text
   ) strict;
   create index changes_of_domain on changes (domain, id desc);
   create index changes_of_send on changes (send_id);
   create index queued_changes on changes (id) where status = 'queued';
   create index changes_by_key on changes (by, idempotency_key) where idempotency_key is not null;
   create table write_probe (at integer not null) strict;
   insert into write_probe values (0);
   insert or ignore into zones select zone_digest(before), zone_packed(before) from first_changes;
   insert or ignore into zones select zone_digest(after), zone_packed(after) from first_changes;
   insert into changes (id, domain, status, by, request_id, is_async, verified, created_at, sent_at, ended_at,
       before, after, email_type_before, email_type_after, warnings, summary)
     select id, domain, 'confirmed', by, request_id, 0, 1, at_ms, at_ms, at_ms, zone_digest(before),
       zone_digest(after), json_extract(before, '$.emailType'), json_extract(after, '$.emailType'), '[]',
       change_summary(added, removed, kept)
     from (select *, cast(round(unixepoch(at, 'subsec') * 1000) as integer) as at_ms from first_changes);
   drop table first_changes;`,

  `create table acme_challenges (
     domain text not null,
     name text not null,
     value text not null,
     created_at integer not null,
     primary key (domain, name, value)
   ) strict;
   create index acme_challenges_by_age on acme_challenges (created_at);`,

  'alter table sends add column repaired_by integer',

  `alter table sends add column unanswered integer not null default 0;
   update sends set unanswered = 1 where given_up_at is not null and repaired_at is null;
   alter table sends drop column repaired_at;`,
]

export const databaseName = 'domain-service.sqlite'

/**
 * Opens the service's database in an existing data directory and migrates it. Commits are durable: WAL with
 * synchronous=FULL.
 */
export function openDatabase(dataDir: string): Database.Database {
  const db = new Database(join(dataDir, databaseName))
  db.pragma('journal_mode = WAL')
  // WAL falls back to NORMAL at each opening; a power cut would then lose the last commits.
  db.pragma('synchronous = FULL')
  // In a container only the data directory is writable, so temporary tables stay in memory.
  db.pragma('temp_store = MEMORY')
  registerConversions(db)
  migrate(db, migrations)
  return db
}

/**
 * Opens a second connection for call counts. Its commits survive the process, but perhaps not a power cut: a forgotten
 * call is one call too many at most, and an fsync per call would delay every call.
 */
export function openCounter(dataDir: string): Database.Database {
  const db = new Database(join(dataDir, databaseName), { fileMustExist: true })
  db.pragma('synchronous = NORMAL')
  db.pragma('temp_store = MEMORY')
  return db
}
