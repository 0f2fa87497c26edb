import { bytes, int8, name, type Statement, sql, strict } from '@domains-and-files/persistence'

export const uploads = name('uploads')

/**
 * Resumable uploads, in PostgreSQL or in `uploads.sqlite` of DATA_DIR. Times are milliseconds since 1970. Unreleased
 * versions created the same table as another part of the migrations.
 */
export const uploadMigrations: Record<'resumable_uploads', Statement[]> = {
  resumable_uploads: [
    sql`
    create table if not exists ${uploads} (
      id text primary key,
      owner text not null, -- a username
      path text not null,
      metadata text not null, -- as it was sent
      length ${int8}, -- null: not yet known
      size ${int8} not null, -- bytes that are durable
      state text, -- of the store
      tail ${bytes},
      outcome text, -- JSON: the headers that told its end; null: unfinished
      is_ended integer not null, -- its bytes are removed
      expires_at ${int8} not null, -- or when it was deleted
      writer_until ${int8} not null,
      epoch integer not null, -- losses of a writer or of the bytes
      tried integer not null default 0 -- 1: the catalog may have stored the file
    ) ${strict};
    create index if not exists uploads_by_owner on ${uploads} (owner) where outcome is null and is_ended = 0;
    create index if not exists uploads_by_expiry on ${uploads} (expires_at)`,
  ],
}
