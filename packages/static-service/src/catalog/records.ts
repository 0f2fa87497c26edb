import { dialect, join, name, one, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'

// Sets of values in one bound value: statements keep their text, and stay prepared, whatever the number of rows.

/**
 * Columns by the member of a row that has each: their types, after the name where that is not the member in snake case.
 */
export type Columns = Record<string, `${'' | `${string} `}${'text' | 'bigint'}`>

export const columns = <const Of extends Columns>(of: Of): Of => of

/** A row with these columns. */
export type RowOf<Of extends Columns> = {
  [Member in keyof Of]: Of[Member] extends `${string}bigint` ? number : string
}

const text = (...parts: string[]): Statement => sql([parts.join(', ')])

export const columnsIn = (columns: Columns) =>
  Object.entries(columns).map(([member, written]) => {
    const snakeCase = member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    const [type = 'text', column = snakeCase] = written.split(' ').reverse()
    return { member, column, type }
  })

export const columnNames = (columns: Columns): Statement => text(...columnsIn(columns).map(({ column }) => column))

/** The columns as members of a row. */
export const selected = (columns: Columns): Statement =>
  text(...columnsIn(columns).map(({ member, column }) => `${column} "${member}"`))

/** Rows as a table named `record` with these columns. */
export function recordsOf(columns: Columns) {
  const all = columnsIn(columns)
  const read = text(...all.map(({ member, column }) => `value ->> '${member}' ${column}`))
  const renamed = text(...all.map(({ member, column }) => `"${member}" ${column}`))
  const types = text(...all.map(({ member, type }) => `"${member}" ${type}`))
  return (rows: readonly object[]): Statement => {
    const json = JSON.stringify(rows)
    return dialect({
      sqlite: sql`(select ${read} from jsonb_each(${json})) record`,
      postgres: sql`(select ${renamed} from json_to_recordset(${json}) as row (${types})) record`,
    })
  }
}

/** Inserts rows with these columns. `onConflict`: text after the values. */
export function insertInto(table: string, columns: Columns, onConflict = '') {
  const [into, names, otherwise] = [name(table), columnNames(columns), text(onConflict)]
  const records = recordsOf(columns)
  return async (transaction: Writer, rows: readonly object[]): Promise<void> => {
    for (const some of pieces(rows))
      await transaction.run(
        sql`insert into ${into} (${names}) select ${names} from ${records(some)} where true ${otherwise}`,
      )
  }
}

/** `on conflict` clause: updates these columns of an existing row with this key, by default to the new values. */
export function orSet(key: string, columns: Columns, to = (column: string) => `excluded.${column}`) {
  const set = columnsIn(columns).map(({ column }) => `${column} = ${to(column)}`)
  return `on conflict (${key}) do update set ${set.join(', ')}`
}

/** A statement has a time limit; each new file adds about a hundred entries to the search index. */
const pieceSize = 1000

export function* pieces<Row>(rows: readonly Row[], size = pieceSize): Generator<Row[]> {
  for (let from = 0; from < rows.length; from += size) yield rows.slice(from, from + size)
}

export type Writer = Pick<SqlTransaction, 'dialect' | 'run'>

/** Runs the statements of `work`; in PostgreSQL eight per round trip. None may touch a row of another one. */
export async function runTogether(transaction: SqlTransaction, work: (writer: Writer) => Promise<void>): Promise<void> {
  if (transaction.dialect === 'sqlite') return work(transaction)
  const parts: Statement[] = []
  await work({ dialect: 'postgres', run: async (statement) => parts.push(statement) })
  for (const some of pieces(parts, 8)) {
    const named = some.map((part, at) => sql([`part_${at} as (`, ')'], part))
    await transaction.run(sql`with ${join(named)} select`)
  }
}

/** A page of rows by its number, or the rows after a position, as requests ask for it. */
export interface PageQuery<Position> {
  page: number
  page_size: number
  after?: Position | undefined
}

export interface Page<Row, Position> {
  rows: Row[]
  /** On all pages. */
  total: number
  /** `after` of the next page; undefined: there is none. */
  next: Position | undefined
}

/** Reads a page: `from` selects the rows in order, from those that `after` names if any; `all` are all of them. */
export async function readPage<Row extends object, Position>(
  database: SqlTransaction,
  { page, page_size: pageSize, after }: PageQuery<Position>,
  { from, all, positionOf }: { from: Statement; all: Statement; positionOf: (row: Row) => Position },
): Promise<Page<Row, Position>> {
  const skip = after === undefined ? (page - 1) * pageSize : 0
  const found = await database.all<Row>(sql`${from} limit ${pageSize + 1} offset ${skip}`)
  const { total } = await one<{ total: number }>(database, sql`select count(*) total from ${all}`)
  const rows = found.slice(0, pageSize)
  const last = found.length > pageSize ? rows.at(-1) : undefined
  return { rows, total, next: last && positionOf(last) }
}

/** Condition: equals one of these values. */
export const among = (values: readonly (string | number)[]): Statement =>
  dialect({
    sqlite: sql`in (select value from json_each(${JSON.stringify(values)}))`,
    postgres: sql`= any(${values})`,
  })

/** Function: where a text contains another, from 1; 0: nowhere. */
export const indexOf: Statement = dialect({ sqlite: sql`instr`, postgres: sql`strpos` })

/** Condition: the path is below a directory; the root is empty. */
export function below(directory: string, mark: Statement = sql``): Statement {
  if (directory === '') return sql`path > ''`
  // `0` is the character after `/`.
  return sql`${mark}path > ${`${directory}/`} and ${mark}path < ${`${directory}0`}`
}

/** Condition: the path is below one of these folders, each of which ends in a slash. */
export const belowAny = (folders: readonly string[], mark?: Statement): Statement =>
  sql`(${join([sql`1 = 0`, ...folders.map((folder) => sql`(${below(folder.slice(0, -1), mark)})`)], ' or ')})`

/** A row with these columns as a JSON object, as text without spaces. */
export function jsonRow(columns: Columns): Statement {
  const pairs = text(...columnsIn(columns).map(({ member, column }) => `'${member}', ${column}`))
  return dialect({
    sqlite: sql`json_object(${pairs})`,
    postgres: sql`(select row_to_json(object)::text from (select ${selected(columns)}) object)`,
  })
}

/** The conjunction of these conditions. */
export const all = (conditions: Statement[]): Statement =>
  conditions.length === 0 ? sql`1 = 1` : join(conditions, ' and ')
