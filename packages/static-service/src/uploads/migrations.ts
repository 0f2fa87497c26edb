import { bytes, int8, name, type Statement, sql, strict } from '@domains-and-files/persistence'

export const uploads = name('uploads')

/** Resumable uploads, in PostgreSQL or in `uploads.sqlite` of DATA_DIR. Times are milliseconds since 1970. */
export const uploadMigrations: Statement[] = [
  sql`
  create table ${uploads} (
    id text primary key,
    owner text not null, -- a username
    path text not null,
    metadata text not null, -- as it was sent
    conditions text not null, -- JSON
    length ${int8}, -- null: not yet known
    size ${int8} not null, -- bytes that are durable
    state text, -- of the store
    tail ${bytes},
    publishing text, -- the digest of a content that the catalog may have been given
    outcome text, -- JSON: the headers that told its end; null: unfinished
    is_ended integer not null, -- its bytes are removed
    expires_at ${int8} not null, -- or when it was deleted
    writer text,
    writer_until ${int8} not null,
    epoch integer not null -- writers that fell silent
  ) ${strict};
  create index uploads_by_owner on ${uploads} (owner) where outcome is null and is_ended = 0;
  create index uploads_by_expiry on ${uploads} (expires_at)`,
  sql`
  alter table ${uploads} drop column conditions;
  alter table ${uploads} drop column publishing;
  alter table ${uploads} drop column writer`,
  sql`
  alter table ${uploads} add column tried integer not null default 0;
  update ${uploads} set expires_at = expires_at - 86400000 where is_ended = 1`,
]
