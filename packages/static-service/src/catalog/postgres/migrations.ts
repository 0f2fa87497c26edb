/** The schema of everything that static-service stores in PostgreSQL. */
export const schemaName = 'static_service'

/**
 * Each brings the tables of the catalog from its number to the next; they are only ever appended. `collate "C"`: names
 * sort by their UTF-8 bytes, as in SQLite.
 */
export const catalogMigrations = [
  `create table static_service.directories (
     path text collate "C" primary key,
     parent text collate "C", -- null: the root
     name text collate "C" not null,
     children integer not null, -- directly in it
     file_count bigint not null, -- in it and all below
     total_size bigint not null
   ) with (fillfactor = 70);
   create unique index directories_of_parent on static_service.directories (parent, name);
   insert into static_service.directories values ('', null, '', 0, 0, 0);

   create table static_service.files (
     id bigint generated always as identity primary key,
     path text collate "C" not null,
     directory text collate "C" not null,
     name text collate "C" not null,
     folded text collate "C" not null, -- the path as searches compare it
     digest text collate "C" not null,
     size bigint not null,
     content_type text collate "C" not null,
     category text collate "C" not null,
     uploaded_by text collate "C" not null,
     created_at text collate "C" not null, -- ISO 8601 in UTC, with milliseconds
     updated_at text collate "C" not null,
     revision bigint not null -- of the catalog, when this row was written
   );
   create unique index files_by_path on static_service.files (path) include (id);
   create index files_of_directory on static_service.files (directory, name) include (id);
   create index files_by_time on static_service.files (updated_at, path) include (id);
   create index files_by_size on static_service.files (size, path) include (id);
   create index files_of_category on static_service.files (category, path) include (id);
   create index files_of_category_by_time on static_service.files (category, updated_at, path) include (id);
   create index files_of_category_by_size on static_service.files (category, size, path) include (id);

   -- The runs of one, two and three bytes in a text as numbers, and its category as a negative one: the first two letters
   -- of a category are its own.
   create function static_service.trigrams(folded text, category text) returns integer[]
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
   create index files_by_trigrams on static_service.files
     using gin (static_service.trigrams(folded, category)) with (fastupdate = off);

   create table static_service.blobs (
     digest text collate "C" primary key,
     size bigint not null,
     refs bigint not null
   );

   create table static_service.categories (
     category text collate "C" primary key,
     file_count bigint not null,
     total_size bigint not null
   );

   -- One row. The revision is the number of groups of changes that were committed.
   create table static_service.catalog (
     singleton boolean primary key default true check (singleton),
     revision bigint not null,
     stored_size bigint not null
   );
   insert into static_service.catalog (revision, stored_size) values (0, 0);

   create table static_service.versions (
     id bigint primary key,
     version text collate "C" not null unique,
     changelog text not null,
     created_by text not null,
     created_at text not null
   );`,
  `-- Paths of the files that each revision of the catalog changed; an empty one stands for more than are named. Old ones
   -- are removed.
   create table static_service.changed_paths (
     revision bigint not null,
     path text collate "C" not null
   );
   create index changed_paths_by_revision on static_service.changed_paths (revision);`,
  `-- A \`ListedState\` each; null: no file. Both are null where the path stands for more, or an older version wrote it.
   alter table static_service.changed_paths add column before json, add column after json;`,
]
