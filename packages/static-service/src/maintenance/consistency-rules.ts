import type { Database } from '../catalog/sqlite/database.ts'

export interface Damage {
  /** The path of a file, or what else is damaged. */
  path: string
  fault: string
}

/** What of the catalog does not agree with itself: rows, references and every count that is kept. */
export function findMiscounts(db: Database): Damage[] {
  const integrity = db.pragma('quick_check(10)', { simple: true })
  const database = integrity === 'ok' ? [] : [{ path: 'the database', fault: String(integrity) }]
  const found = rules.flatMap(({ fault, sql }) =>
    db
      .prepare<[], string>(sql)
      .pluck()
      .all()
      .map((path) => ({ path, fault })),
  )
  return [...database, ...found]
}

const rules = [
  {
    fault: 'its content is not among the contents, or of another size',
    sql: `select path from files f
          where not exists (select 1 from blobs where digest = f.digest and size = f.size)`,
  },
  {
    fault: 'its references are miscounted',
    sql: `select 'the content ' || digest from blobs b
          where refs <> (select count(*) from files where digest = b.digest)`,
  },
  {
    fault: 'its files are miscounted',
    sql: `select 'the directory /' || path from directories d
          where file_count <> (select count(*) from files where directory = d.id)
              + (select coalesce(sum(file_count), 0) from directories where parent = d.id)
            or total_size <> (select coalesce(sum(size), 0) from files where directory = d.id)
              + (select coalesce(sum(total_size), 0) from directories where parent = d.id)
            or children <> (select count(*) from files where directory = d.id)
              + (select count(*) from directories where parent = d.id)
            or (file_count = 0 and id <> 1)`,
  },
  {
    fault: 'it is not in its directory',
    sql: `select f.path from files f left join directories d on d.id = f.directory
          where f.path is not iif(d.path = '', f.name, d.path || '/' || f.name)`,
  },
  {
    fault: 'its files are miscounted',
    sql: `select 'the category ' || coalesce(c.category, f.category)
          from categories c full join
            (select category, count(*) files, sum(size) bytes from files group by category) f
            on f.category = c.category
          where c.file_count is not f.files or c.total_size is not f.bytes`,
  },
  {
    fault: 'they are miscounted',
    sql: `select 'the stored bytes' from stored
          where size <> (select coalesce(sum(size), 0) from blobs)`,
  },
  {
    fault: 'it does not have every file once',
    sql: `select 'the search index' where (select count(*) from grams) <> (select count(*) from files)
            or exists (select id from files except select rowid from grams)`,
  },
]
