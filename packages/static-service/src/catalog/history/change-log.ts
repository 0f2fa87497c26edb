import {
  join,
  name,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import type { ChangeAction, ChangeEntry } from '../changes/change-entry.ts'
import type { RecordedState } from '../listing/list-changes.ts'
import { all, below, selected } from '../records.ts'
import { entryColumns } from '../tables.ts'

// What requests did to files, newest first.

export interface ChangeQuery {
  /** Changes of a file below this directory; the root is empty. */
  prefix: string
  by?: string | undefined
  action?: ChangeAction | undefined
  /** ISO 8601 in UTC, with milliseconds: changes at this time or later. */
  since?: string | undefined
  /** Only changes of files in these folders and of no others. */
  within?: readonly string[] | undefined
  page: number
  pageSize: number
  /** Changes before this one, in place of the page. */
  before?: number | undefined
}

export interface ChangeList {
  changes: ChangeEntry[]
  total: number
  /** Pass as `before` for the next page; undefined: last page. */
  next: number | undefined
}

/** A file before and after a change; null: no file. */
export interface RecordedFile {
  path: string
  before: RecordedState | null
  after: RecordedState | null
}

type EntryRow = Omit<ChangeEntry, 'paths' | 'isForgotten'> & { paths: string; forgotten: number }

const entryRow = selected({ ...entryColumns, forgotten: 'bigint' })

const toEntry = ({ paths, forgotten, ...row }: EntryRow): ChangeEntry => ({
  ...row,
  paths: JSON.parse(paths),
  isForgotten: forgotten === 1,
})

/** The entry of a change. */
export async function readEntry(
  database: Pick<SqlTransaction, 'get'>,
  id: number,
  condition: Statement = sql`1 = 1`,
): Promise<ChangeEntry | undefined> {
  const row = await database.get<EntryRow>(
    sql`select ${entryRow} from ${name('changes')} entry where id = ${id} and ${condition}`,
  )
  return row && toEntry(row)
}

/** Changes, newest first. */
export async function listChanges(
  database: SqlTransaction,
  { before, page, pageSize, ...filter }: ChangeQuery,
): Promise<ChangeList> {
  const wanted = conditionsOf(filter)
  const from = before === undefined ? [] : [sql`entry.id < ${before}`]
  const skip = before === undefined ? (page - 1) * pageSize : 0
  const rows = await database.all<EntryRow>(
    sql`select ${entryRow} from ${name('changes')} entry where ${all([...wanted, ...from])}
      order by id desc limit ${pageSize + 1} offset ${skip}`,
  )
  const counted = await database.get<{ total: number }>(
    sql`select count(*) total from ${name('changes')} entry where ${all(wanted)}`,
  )
  const changes = rows.slice(0, pageSize).map(toEntry)
  const next = rows.length > pageSize ? changes.at(-1)?.id : undefined
  return { changes, total: counted?.total ?? 0, next }
}

function conditionsOf({
  prefix,
  by,
  action,
  since,
  within,
}: Omit<ChangeQuery, 'page' | 'pageSize'>) {
  return [
    isWithin(within),
    ...(by === undefined ? [] : [sql`entry.changed_by = ${by}`]),
    ...(action === undefined ? [] : [sql`entry.action = ${action}`]),
    ...(since === undefined ? [] : [sql`entry.at >= ${since}`]),
    ...(prefix === ''
      ? []
      : [
          sql`exists (select 1 from ${name('changed_files')} file
            where file.change_id = entry.id and ${below(prefix, sql`file.`)})`,
        ]),
  ]
}

// Each folder ends in a slash.
function isWithin(folders: readonly string[] | undefined): Statement {
  if (!folders) return sql`1 = 1`
  const inside = folders.map((folder) => sql`(${below(folder.slice(0, -1), sql`file.`)})`)
  return sql`not exists (select 1 from ${name('changed_files')} file
    where file.change_id = entry.id and not (${join([sql`1 = 0`, ...inside], ' or ')}))`
}

export interface ChangePageQuery {
  id: number
  /** As in `ChangeQuery`. */
  within?: readonly string[] | undefined
  page: number
  pageSize: number
  /** Files after this path, in place of the page. */
  after?: string | undefined
}

/** A change and some of its files, by path. */
export interface ChangePage {
  change: ChangeEntry
  files: RecordedFile[]
  total: number
  /** Pass as `after` for the next page; undefined: last page. */
  next: string | undefined
}

/** A change and a page of its files, by path; undefined: no such change. */
export async function readChange(
  database: SqlTransaction,
  { id, within, page, pageSize, after }: ChangePageQuery,
): Promise<ChangePage | undefined> {
  const change = await readEntry(database, id, isWithin(within))
  if (!change) return undefined
  const rows = await database.all<{ path: string; before: string | null; after: string | null }>(
    sql`select path, before, after from ${name('changed_files')}
      where change_id = ${id} and path > ${after ?? ''} order by path
      limit ${pageSize + 1} offset ${after === undefined ? (page - 1) * pageSize : 0}`,
  )
  const files = rows.slice(0, pageSize).map(({ path, ...states }) => ({
    path,
    before: states.before && JSON.parse(states.before),
    after: states.after && JSON.parse(states.after),
  }))
  const next = rows.length > pageSize ? files.at(-1)?.path : undefined
  const counted = await database.get<{ total: number }>(
    sql`select count(*) total from ${name('changed_files')} where change_id = ${id}`,
  )
  return { change, files, total: counted?.total ?? 0, next }
}
