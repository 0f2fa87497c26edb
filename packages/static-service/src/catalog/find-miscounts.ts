import { dialect, name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'

export interface Miscount {
  /** The path of a file, or the name of another damaged row. */
  path: string
  fault: string
}

/** Finds inconsistent rows, references and counters of the catalog. */
export async function findMiscounts(database: SqlTransaction): Promise<Miscount[]> {
  const found: Miscount[] = []
  for (const [fault, statement] of Object.entries(faults)) {
    const rows = await database.all<{ path: string }>(statement)
    found.push(...rows.map(({ path }) => ({ path, fault })))
  }
  return found
}

const [files, directories, blobs] = [name('files'), name('directories'), name('blobs')]
const past = name('past_files')

/** Selects the rows with each fault as `path`. */
const faults: Record<string, Statement> = {
  'its content is not among the contents, or of another size': sql`select file.path from
      (select path, digest, size from ${files} union all select path, digest, size from ${past}) file
    left join ${blobs} blob on blob.digest = file.digest and blob.size = file.size
    where blob.digest is null`,
  // Not a full join: SQLite would compare every row with every other.
  'its references are miscounted': sql`select 'the content ' || digest path from (
      select digest, size, refs, past from ${blobs}
      union all
      select digest, max(size) size, -count(*) refs, 0 past from ${files} group by digest
      union all
      select digest, max(size) size, 0 refs, -count(*) past from ${past} group by digest
    ) counted
    group by digest having count(*) < 2 or sum(refs) <> 0 or sum(past) <> 0 or min(size) <> max(size)`,
  'its files are miscounted': sql`select 'the directory /' || kept.path path
    from ${directories} kept left join (
      select directory path, count(*) files, sum(size) bytes from ${files} group by directory
    ) direct on direct.path = kept.path left join (
      select parent path, count(*) children, sum(file_count) files, sum(total_size) bytes
      from ${directories} where parent is not null group by parent
    ) below on below.path = kept.path
    where file_count <> coalesce(direct.files, 0) + coalesce(below.files, 0)
      or total_size <> coalesce(direct.bytes, 0) + coalesce(below.bytes, 0)
      or kept.children <> coalesce(direct.files, 0) + coalesce(below.children, 0)
      or (file_count = 0 and kept.path <> '')
  union all
  select 'the category ' || coalesce(kept.category, found.category) path
    from ${name('categories')} kept full join (
      select category, count(*) files, sum(size) bytes from ${files} group by category
    ) found on found.category = kept.category
    where coalesce(kept.file_count, 0) <> coalesce(found.files, 0)
      or coalesce(kept.total_size, 0) <> coalesce(found.bytes, 0)`,
  'it is not in its directory': sql`select path from ${files} file
    where path <> case when directory = '' then name else directory || '/' || name end
      or not exists (select 1 from ${directories} above where above.path = file.directory)
    union all
    select path from ${directories} kept
    where path <> '' and (path <> case when parent = '' then name else parent || '/' || name end
      or not exists (select 1 from ${directories} above where above.path = kept.parent))`,
  'it does not end after it was made by a known change': sql`select 'the past of ' || path path from ${past}, ${name('catalog')}
    where ended_by <> 0 and (ended_by <= change_id or ended_by > last_change)`,
  'no known change left its files': sql`select 'the version ' || version path from ${name('versions')}, ${name('catalog')}
    where change_id > last_change`,
  'the entry of its change is missing': sql`select 'the history of ' || path path from ${name('changed_files')}
    where change_id not in (select id from ${name('changes')})`,
  'they are miscounted': sql`select 'the stored bytes' path from ${name('catalog')}
    where stored_size <> (select coalesce(sum(size), 0) from ${blobs} where refs > 0)
      or past_size <> (select coalesce(sum(size), 0) from ${blobs} where refs = 0)`,
  'it does not have every file once': sql`select 'the search index' path where ${dialect({
    sqlite: sql`(select count(*) from trigrams) <> (select count(*) from files)
      or exists (select id from files except select rowid from trigrams)`,
    postgres: sql`1 = 0`, // An index of the database.
  })}`,
}
