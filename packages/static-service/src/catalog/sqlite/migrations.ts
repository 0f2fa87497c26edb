// Each brings the schema from its number to the next; they are only ever appended.
export const migrations = [
  `create table directories (
     id integer primary key,
     parent integer references directories (id),
     path text not null unique,
     name text not null,
     children integer not null default 0, -- directly in it
     file_count integer not null default 0, -- in it and all below
     total_size integer not null default 0
   ) strict;
   create unique index directories_of_parent on directories (parent, name);
   insert into directories (id, parent, path, name) values (1, null, '', '');

   create table files (
     id integer primary key,
     directory integer not null references directories (id),
     path text not null unique,
     name text not null,
     folded text not null, -- the path as searches compare it
     digest text not null,
     size integer not null,
     content_type text not null,
     category text not null,
     uploaded_by text not null,
     created_at text not null,
     updated_at text not null
   ) strict;
   create index files_of_directory on files (directory, name);
   create index files_of_digest on files (digest);
   create index files_by_time on files (updated_at, path);
   create index files_by_size on files (size, path);
   create index files_of_category on files (category, path);
   create index files_of_category_by_time on files (category, updated_at, path);
   create index files_of_category_by_size on files (category, size, path);

   -- What each file can be found by: all its grams of up to three bytes, and its category.
   create virtual table grams using fts5 (
     body, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii', prefix = '1 2'
   );

   create table blobs (
     digest text primary key,
     size integer not null,
     refs integer not null
   ) strict, without rowid;

   create table categories (
     category text primary key,
     file_count integer not null,
     total_size integer not null
   ) strict, without rowid;

   create table stored (only integer primary key check (only = 1), size integer not null) strict;
   insert into stored values (1, 0);

   create table versions (
     id integer primary key autoincrement,
     version text not null unique,
     changelog text not null,
     created_by text not null,
     created_at text not null
   ) strict;`,

  // Along every order a search can look at what it compares without reading the rows. Nearly every path is its own
  // spelling in capitals, which is then not kept beside it.
  `drop index files_by_time;
   drop index files_by_size;
   drop index files_of_category;
   drop index files_of_category_by_time;
   drop index files_of_category_by_size;
   alter table files rename column folded to folded_before;
   alter table files add column folded text;
   update files set folded = folded_before where folded_before <> upper(path);
   alter table files drop column folded_before;
   create index files_by_path on files (path, folded);
   create index files_by_time on files (updated_at, path, folded);
   create index files_by_size on files (size, path, folded);
   create index files_of_category on files (category, path, folded);
   create index files_of_category_by_time on files (category, updated_at, path, folded);
   create index files_of_category_by_size on files (category, size, path, folded);`,

  // Replaced by the content database.
  `create table unflushed (
     digest text primary key,
     generation integer not null,
     bytes blob not null
   ) strict;`,

  // What was left in it has been copied to the content database: see `openDatabase`.
  'drop table unflushed',
]
