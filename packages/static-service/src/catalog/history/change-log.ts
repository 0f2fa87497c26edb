import { name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { all, below, belowAny, type Page, type PageQuery, readPage, selected } from '../records.ts'
import { type ChangeAction, type ChangeEntry, changedColumns, entryColumns, type RecordedState } from '../tables.ts'

// What requests did to files, newest first.

/** `after`: changes before this one. */
interface ChangeQuery extends PageQuery<number> {
  /** Changes of a file below this directory; the root is empty. */
  prefix: string
  by?: string | undefined
  action?: ChangeAction | undefined
  /** ISO 8601 in UTC, with milliseconds: changes at this time or later. */
  since?: string | undefined
  /** Only changes of files in these folders and of no others. */
  within?: readonly string[] | undefined
}

/** A file before and after a change; null: no file. A forgotten file has neither. */
export interface RecordedFile {
  changeId: number
  path: string
  before: RecordedState | null
  after: RecordedState | null
}

type RecordedRow = Record<'before' | 'after', string | null> & { changeId: number; path: string }

const recordedRows = sql`select ${selected(changedColumns)} from ${name('changed_files')}`

const toRecorded = ({ changeId, path, before, after }: RecordedRow): RecordedFile => ({
  changeId,
  path,
  before: before && JSON.parse(before),
  after: after && JSON.parse(after),
})

export async function readRecordedFiles(database: SqlTransaction, condition: Statement): Promise<RecordedFile[]> {
  const rows = await database.all<RecordedRow>(sql`${recordedRows} where ${condition}`)
  return rows.map(toRecorded)
}

type EntryRow = Omit<ChangeEntry, 'paths' | 'isForgotten'> & { paths: string; forgotten: number }

const entryRow = selected({ ...entryColumns, forgotten: 'bigint' })

const toEntry = ({ paths, forgotten, ...row }: EntryRow): ChangeEntry => ({
  ...row,
  paths: JSON.parse(paths),
  isForgotten: forgotten === 1,
})

export async function readEntry(
  database: SqlTransaction,
  id: number,
  condition: Statement = sql`1 = 1`,
): Promise<ChangeEntry | undefined> {
  const row = await database.get<EntryRow>(
    sql`select ${entryRow} from ${name('changes')} entry where id = ${id} and ${condition}`,
  )
  return row && toEntry(row)
}

export async function listChanges(database: SqlTransaction, query: ChangeQuery): Promise<Page<ChangeEntry, number>> {
  const { after = Number.MAX_SAFE_INTEGER } = query
  const wanted = sql`${name('changes')} entry where ${all(conditionsOf(query))}`
  const found = await readPage<EntryRow, number>(database, query, {
    from: sql`select ${entryRow} from ${wanted} and entry.id < ${after} order by id desc`,
    all: wanted,
    positionOf: ({ id }) => id,
  })
  return { ...found, rows: found.rows.map(toEntry) }
}

function conditionsOf({ prefix, by, action, since, within }: ChangeQuery) {
  const isBelow = sql`exists (select 1 from ${name('changed_files')} file
    where file.change_id = entry.id and ${below(prefix, sql`file.`)})`
  return [
    isWithin(within),
    by === undefined ? undefined : sql`entry.changed_by = ${by}`,
    action === undefined ? undefined : sql`entry.action = ${action}`,
    since === undefined ? undefined : sql`entry.at >= ${since}`,
    prefix === '' ? undefined : isBelow,
  ].filter((each) => each !== undefined)
}

function isWithin(folders: readonly string[] | undefined): Statement {
  if (!folders) return sql`1 = 1`
  return sql`not exists (select 1 from ${name('changed_files')} file
    where file.change_id = entry.id and not ${belowAny(folders, sql`file.`)})`
}

/** A change and a page of its files, by path; undefined: no such change. `after`: files after this path. */
export async function readChange(
  database: SqlTransaction,
  { id, within, ...query }: PageQuery<string> & Pick<ChangeQuery, 'within'> & { id: number },
): Promise<(Page<RecordedFile, string> & { change: ChangeEntry }) | undefined> {
  const change = await readEntry(database, id, isWithin(within))
  if (!change) return undefined
  const ofChange = sql`change_id = ${id}`
  const found = await readPage<RecordedRow, string>(database, query, {
    from: sql`${recordedRows} where ${ofChange} and path > ${query.after ?? ''} order by path`,
    all: sql`${name('changed_files')} where ${ofChange}`,
    positionOf: ({ path }) => path,
  })
  return { ...found, change, rows: found.rows.map(toRecorded) }
}

/** A state of a path: what a change left there. */
export interface PathState {
  change: number
  at: string
  by: string
  action: ChangeAction
  /** Null: no file, or a forgotten one. */
  file: RecordedState | null
  isForgotten: boolean | number
  isCurrent: boolean
}

type StateRow = Omit<PathState, 'file' | 'isCurrent'> & { file: string | null }

/** A page of the states of a path, newest first; `after`: those that changes before this one left. */
export async function readStates(
  database: SqlTransaction,
  { path, ...query }: PageQuery<number> & { path: string },
): Promise<Page<PathState, number>> {
  const { after, page } = query
  const found = await readPage<StateRow, number>(database, query, {
    from: sql`select entry.id change, entry.at, entry.changed_by "by", entry.action, file.after file,
        file.before is null and file.after is null "isForgotten"
      from ${name('changed_files')} file join ${name('changes')} entry on entry.id = file.change_id
      where file.path = ${path} and file.change_id < ${after ?? Number.MAX_SAFE_INTEGER}
      order by file.change_id desc`,
    all: sql`${name('changed_files')} where path = ${path}`,
    positionOf: ({ change }) => change,
  })
  const rows = found.rows.map(({ file, ...row }, at) => ({
    ...row,
    file: file && JSON.parse(file),
    isCurrent: after === undefined && page === 1 && at === 0 && file !== null,
  }))
  return { ...found, rows }
}
