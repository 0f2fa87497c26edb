/**
 * Tables of blobs and of the objects in the bucket. Part of the schema `static_service`, whose migrations are one list.
 * An object's key is in `garbage` before its upload begins, in `contents` while a file refers to it, and in `garbage`
 * again until it is deleted: at any moment in exactly one of them.
 */
export const contentMigrations = [
  `create table static_service.contents (
     digest text collate "C" not null,
     coding smallint not null, -- an index of contentCodings
     size bigint not null,
     bytes bytea, -- up to 32 KiB
     object_key text collate "C", -- larger ones
     etag text,
     primary key (digest, coding),
     check ((bytes is null) <> (object_key is null))
   );
   -- Small contents are mostly compressed already.
   alter table static_service.contents alter column bytes set storage external;
   create unique index contents_by_object on static_service.contents (object_key) where object_key is not null;

   -- Objects that no content refers to: to be deleted when they are due, unless a commit takes them before.
   create table static_service.garbage (
     object_key text collate "C" primary key,
     upload_id text, -- of a multipart upload
     due_at timestamptz not null,
     digest text collate "C" -- of a content that was freed
   );
   create index garbage_by_due on static_service.garbage (due_at);

   -- Nothing is deleted from the bucket while a backup runs.
   create table static_service.backups (
     id text primary key,
     expires_at timestamptz not null
   )`,
]
