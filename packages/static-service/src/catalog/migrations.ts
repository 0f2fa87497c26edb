import { dialect, int8, name, type Statement, sql, strict, byteText as text } from '@domains-and-files/persistence'

/** The schema of everything that static-service stores in PostgreSQL. */
export const schemaName = 'static_service'

/** Columns of a table that is found by its text key alone. */
const keyed = dialect({ sqlite: sql`strict, without rowid`, postgres: sql`` })

/** The path as searches compare it. SQLite stores it only if it differs from the path in upper case. */
export const foldedPath: Statement = dialect({
  sqlite: sql`iif(folded = '', upper(path), folded)`,
  postgres: sql`folded`,
})

// An index in an order of lists. SQLite searches along it without reading rows.
const ordered = (columns: Statement) =>
  dialect({ sqlite: sql`(${columns}, folded)`, postgres: sql`(${columns}) include (id)` })

/** The tables of the catalog. Only `stored-rows.ts` makes, replaces and ends rows of files. */
export const catalogMigrations: Statement[] = [
  sql`
  create table ${name('directories')} (
    path ${text} primary key,
    parent ${text}, -- null: the root
    name ${text} not null,
    children ${int8} not null, -- directly in it
    file_count ${int8} not null, -- in it and all below
    total_size ${int8} not null
  ) ${dialect({ sqlite: sql`strict, without rowid`, postgres: sql`with (fillfactor = 70)` })};
  create unique index directories_of_parent on ${name('directories')} (parent, name);
  insert into ${name('directories')} values ('', null, '', 0, 0, 0);

  create table ${name('files')} (
    id ${int8} primary key,
    path ${text} not null,
    directory ${text} not null,
    name ${text} not null,
    folded ${text} not null,
    digest ${text} not null,
    size ${int8} not null,
    content_type ${text} not null,
    category ${text} not null,
    uploaded_by ${text} not null,
    created_at ${text} not null, -- ISO 8601 in UTC, with milliseconds
    updated_at ${text} not null,
    change_id ${int8} not null -- the change that made this row
  ) ${strict};
  create unique index files_by_path on ${name('files')} ${ordered(sql`path`)};
  create index files_of_directory on ${name('files')}
    ${dialect({ sqlite: sql`(directory, name)`, postgres: sql`(directory, name) include (id)` })};
  create index files_by_time on ${name('files')} ${ordered(sql`updated_at, path`)};
  create index files_by_size on ${name('files')} ${ordered(sql`size, path`)};
  create index files_of_category on ${name('files')} ${ordered(sql`category, path`)};
  create index files_of_category_by_time on ${name('files')} ${ordered(sql`category, updated_at, path`)};
  create index files_of_category_by_size on ${name('files')} ${ordered(sql`category, size, path`)};

  -- Rows that were replaced or removed, as they were. Visible after change N: change_id <= N < ended_by.
  create table ${name('past_files')} (
    path ${text} not null,
    change_id ${int8} not null,
    ended_by ${int8} not null, -- the change that replaced or removed it
    ended_at ${text} not null,
    digest ${text} not null,
    size ${int8} not null,
    content_type ${text} not null,
    category ${text} not null,
    uploaded_by ${text} not null,
    created_at ${text} not null,
    updated_at ${text} not null,
    primary key (path, change_id)
  ) ${keyed};
  create index past_files_by_end on ${name('past_files')} (ended_at);

  create table ${name('blobs')} (
    digest ${text} primary key,
    size ${int8} not null,
    refs ${int8} not null, -- files
    past ${int8} not null -- rows of past_files
  ) ${keyed};

  create table ${name('categories')} (
    category ${text} primary key,
    file_count ${int8} not null,
    total_size ${int8} not null
  ) ${keyed};

  -- One row.
  create table ${name('catalog')} (
    singleton integer primary key check (singleton = 1),
    last_change ${int8} not null, -- number of the last change of files
    last_changed_at ${text} not null, -- the latest date that a file has been given
    stored_size ${int8} not null, -- bytes of the contents of files
    past_size ${int8} not null -- bytes of the other contents, which only past files have
  ) ${strict};
  insert into ${name('catalog')} values (1, 0, '', 0, 0);

  -- What requests did to files: see ChangeEntry.
  create table ${name('changes')} (
    id ${int8} primary key,
    at ${text} not null,
    changed_by ${text} not null,
    token text,
    request_id text not null,
    action ${text} not null,
    prefix text,
    version text,
    added ${int8} not null,
    replaced ${int8} not null,
    removed ${int8} not null,
    bytes ${int8} not null,
    paths text not null, -- a JSON array
    forgotten integer not null default 0 -- 1: files of it have been forgotten
  ) ${strict};
  create index changes_by_time on ${name('changes')} (at);

  -- What each change did to which files. The states are JSON: see RecordedState; null: no file. A row
  -- without any is of a forgotten file.
  create table ${name('changed_files')} (
    change_id ${int8} not null,
    path ${text} not null,
    before_change ${int8}, -- the change that made the row before
    before ${text},
    after ${text},
    primary key (change_id, path)
  ) ${keyed};
  create index changed_files_by_path on ${name('changed_files')} (path, change_id);

  -- Changes of more files than one transaction should hold, until their last slice.
  create table ${name('unfinished_changes')} (
    id ${int8} primary key, -- of the change: files that a later one made are left as they are
    directory ${text} not null,
    target ${text}, -- null: a deletion
    overwrite integer not null,
    cause text not null, -- JSON: see ChangeCause
    touched_at ${int8} not null -- milliseconds since 1970
  ) ${strict};

  create table ${name('versions')} (
    id ${int8} primary key,
    version ${text} not null unique,
    changelog text not null,
    created_by text not null,
    created_at text not null,
    change_id ${int8} not null, -- files are as this change left them
    files_kept integer not null default 1 -- 0: not all of them are kept
  ) ${strict};

  ${dialect({ sqlite: sqliteSearch(), postgres: postgresSearch() })}`,
  // SQLite reads trees from this index alone.
  dialect({
    sqlite: sql`drop index files_of_directory;
      create index files_of_directory on files (directory, name, size, content_type)`,
    postgres: sql`select 1`,
  }),
]

// What each file can be found by: the runs of up to three bytes in its path, and its category. See `search-index.ts`.
function sqliteSearch(): Statement {
  return sql`create virtual table trigrams using fts5 (
    body, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii', prefix = '1 2'
  );
  -- A part of the index is rewritten when half of it is deleted, not a tenth: measured, 15 instead of 126 µs a deleted file.
  insert into trigrams (trigrams, rank) values ('deletemerge', 50)`
}

// Runs as numbers, the category as a negative one: the first two letters of a category are its own.
function postgresSearch(): Statement {
  return sql`
  create function ${name('trigrams')}(folded text, category text) returns integer[]
  language sql immutable parallel safe as $$
    select array_append(array_agg(case length
        when 1 then get_byte(bytes, at)
        when 2 then 256 + (get_byte(bytes, at) << 8) + get_byte(bytes, at + 1)
        else 65792 + (get_byte(bytes, at) << 16) + (get_byte(bytes, at + 1) << 8) + get_byte(bytes, at + 2)
      end), -((ascii(category) << 8) + ascii(substr(category, 2, 1))))
    from (select convert_to(folded, 'UTF8') bytes offset 0) text,
      generate_series(0, octet_length(bytes) - 1) at,
      (values (1), (2), (3)) lengths (length)
    where at + length <= octet_length(bytes)
  $$;
  create index files_by_trigrams on ${name('files')}
    using gin (${name('trigrams')}(folded, category)) with (fastupdate = off)`
}
