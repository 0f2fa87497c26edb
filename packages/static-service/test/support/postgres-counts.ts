import type { Postgres } from '@domains-and-files/persistence'

/** Which counts of a catalog in PostgreSQL differ from its rows; empty if none does. */
export async function findMiscounts(postgres: Postgres): Promise<string[]> {
  const found = await postgres.query<{ name: string }>(miscounts)
  return found.map(({ name }) => name)
}

const miscounts = `
  with recursive above (path, directory, size) as (
    select path, directory, size from static_service.files
    union all
    select path, case when directory like '%/%' then regexp_replace(directory, '/[^/]*$', '') else '' end, size
    from above where directory <> ''
  ), directories as (
    select directory path, count(*) file_count, sum(size) total_size from above group by directory
  ), children as (
    select path, sum(count) count from (
      select directory path, count(*) from static_service.files group by directory
      union all
      select parent, count(*) from static_service.directories where parent is not null group by parent
    ) each group by path
  ), blobs as (
    select digest, max(size) size, count(*) refs from static_service.files group by digest
  ), categories as (
    select category, count(*) file_count, sum(size) total_size from static_service.files group by category
  )
  select 'directory ' || coalesce(kept.path, found.path) "name"
  from static_service.directories kept full join directories found using (path)
  where (kept.file_count, kept.total_size) is distinct from (coalesce(found.file_count, 0), coalesce(found.total_size, 0))
    and (kept.path is distinct from '' or found.path is not null or kept.file_count <> 0)
  union all
  select 'children of ' || path from static_service.directories kept left join children found using (path)
  where kept.children <> coalesce(found.count, 0)
  union all
  select 'content ' || digest from static_service.blobs kept full join blobs found using (digest)
  where (kept.size, kept.refs) is distinct from (found.size, found.refs)
  union all
  select 'category ' || category from static_service.categories kept full join categories found using (category)
  where (kept.file_count, kept.total_size) is distinct from (found.file_count, found.total_size)
  union all
  select 'stored size' from static_service.catalog
  where stored_size <> (select coalesce(sum(size), 0) from static_service.blobs)`
