import type { Transaction } from '@domains-and-files/persistence'

export interface Miscount {
  /** The path of a file, or what else is wrong. */
  path: string
  fault: string
}

/** What of the catalog does not agree with itself: rows, references and every count that is kept. */
export async function findMiscounts(database: Pick<Transaction, 'query'>): Promise<Miscount[]> {
  const found: Miscount[] = []
  for (const { fault, sql } of rules) {
    const rows = await database.query<{ path: string }>(sql)
    found.push(...rows.map(({ path }) => ({ path, fault })))
  }
  return found
}

const rules = [
  {
    fault: 'its references are miscounted',
    sql: `select 'the content ' || digest path
          from static_service.blobs kept full join (
            select digest, max(size) size, count(*) refs from static_service.files group by digest
          ) found using (digest)
          where (kept.size, kept.refs) is distinct from (found.size, found.refs)`,
  },
  {
    fault: 'its files are miscounted',
    sql: `select 'the directory /' || path path
          from static_service.directories kept left join (
            select directory path, count(*) files, sum(size) bytes from static_service.files group by directory
          ) direct using (path) left join (
            select parent path, count(*) count, sum(file_count) files, sum(total_size) bytes
            from static_service.directories where parent is not null group by parent
          ) below using (path)
          where file_count <> coalesce(direct.files, 0) + coalesce(below.files, 0)
            or total_size <> coalesce(direct.bytes, 0) + coalesce(below.bytes, 0)
            or children <> coalesce(direct.files, 0) + coalesce(below.count, 0)
            or (file_count = 0 and path <> '')`,
  },
  {
    fault: 'it is not in its directory',
    sql: `select path from static_service.files
          where path <> case when directory = '' then name else directory || '/' || name end
            or not exists (select from static_service.directories where path = files.directory)
          union all
          select path from static_service.directories kept
          where path <> '' and (path <> case when parent = '' then name else parent || '/' || name end
            or not exists (select from static_service.directories where path = kept.parent))`,
  },
  {
    fault: 'its files are miscounted',
    sql: `select 'the category ' || category path
          from static_service.categories kept full join (
            select category, count(*) files, sum(size) bytes from static_service.files group by category
          ) found using (category)
          where (file_count, total_size) is distinct from (files, bytes)`,
  },
  {
    fault: 'they are miscounted',
    sql: `select 'the stored bytes' path from static_service.catalog
          where stored_size <> (select coalesce(sum(size), 0) from static_service.blobs)`,
  },
]
