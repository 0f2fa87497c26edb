import {
  dialect,
  eachRow,
  join,
  name,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'

// Sets of values in one bound value: statements keep their text, and stay prepared, whatever the number of rows.

type Columns = Record<string, 'text' | 'bigint'>

const text = (written: string): Statement => sql([written])

/** Objects as a table named `record` with these columns. */
export function recordsOf(columns: Columns) {
  const names = Object.keys(columns)
  const read = text(names.map((key) => `value ->> '${key}' ${key}`).join(', '))
  const types = text(names.map((key) => `${key} ${columns[key]}`).join(', '))
  return (rows: readonly object[]): Statement => {
    const json = JSON.stringify(rows)
    return sql`${dialect({
      sqlite: sql`(select ${read} from jsonb_each(${json})) record`,
      postgres: sql`json_to_recordset(${json}) as record (${types})`,
    })}`
  }
}

/** Inserts objects with these columns. `onConflict`: text after the values. */
export function insertInto(table: string, columns: Columns, onConflict = '') {
  const names = Object.keys(columns)
  const records = recordsOf(columns)
  const into = sql`insert into ${name(table)} (${text(names.join(', '))})`
  const columnsOf = text(`select ${names.join(', ')} from`)
  const marks = text(`values (${names.map(() => '?').join(', ')})`)
  const otherwise = text(onConflict)
  const valuesOf = (row: object) => names.map((key) => Reflect.get(row, key))
  return async (transaction: Writer, rows: readonly object[]): Promise<void> => {
    for (const some of pieces(rows)) {
      const values =
        transaction.dialect === 'sqlite'
          ? sql`${marks}${eachRow(some.map(valuesOf))}`
          : sql`${columnsOf} ${records(some)}`
      await transaction.run(sql`${into} ${values} ${otherwise}`)
    }
  }
}

/** A statement has a time limit; each new file adds about a hundred entries to the search index. */
const pieceSize = 1000

/** At most a thousand of them, or so many. */
export function* pieces<Row>(rows: readonly Row[], size = pieceSize): Generator<Row[]> {
  for (let from = 0; from < rows.length; from += size) yield rows.slice(from, from + size)
}

export type Writer = Pick<SqlTransaction, 'dialect' | 'run'>

/** Runs what `work` runs: statements of which none touches a row of another one. In PostgreSQL they share round trips. */
export async function runTogether(
  transaction: SqlTransaction,
  work: (writer: Writer) => Promise<void>,
): Promise<void> {
  if (transaction.dialect === 'sqlite') return work(transaction)
  const parts: Statement[] = []
  await work({ dialect: 'postgres', run: async (statement) => parts.push(statement) })
  for (const some of pieces(parts, 8)) {
    const named = some.map((part, at) => sql([`part_${at} as (`, ')'], part))
    await transaction.run(sql`with ${join(named)} select`)
  }
}

/** Condition: equals one of these values. */
export const among = (values: readonly (string | number)[]): Statement =>
  sql`${dialect({
    sqlite: sql`in (select value from json_each(${JSON.stringify(values)}))`,
    postgres: sql`= any(${values})`,
  })}`

/** A JSON object of columns or expressions by key, as text without spaces. */
export function jsonObject(fields: Record<string, string>): Statement {
  const entries = Object.entries(fields)
  const pairs = entries.map(([key, value]) => `'${key}', ${value}`).join(', ')
  const columns = entries.map(([key, value]) => `${value} "${key}"`).join(', ')
  return sql`${dialect({
    sqlite: sql`json_object(${text(pairs)})`,
    postgres: sql`(select row_to_json(object)::text from (select ${text(columns)}) object)`,
  })}`
}

/** Conditions of which all hold. */
export const all = (conditions: Statement[]): Statement =>
  conditions.length === 0 ? sql`1 = 1` : join(conditions, ' and ')

/** The columns of a file as a change made it, in `files` and `past_files`, with their types in PostgreSQL. */
export const stateTypes = {
  path: 'text',
  digest: 'text',
  size: 'bigint',
  content_type: 'text',
  category: 'text',
  uploaded_by: 'text',
  created_at: 'text',
  updated_at: 'text',
  change_id: 'bigint',
} as const
