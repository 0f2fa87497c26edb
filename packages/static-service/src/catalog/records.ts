import { dialect, join, type Statement, sql } from '@domains-and-files/persistence'

// Sets of values in one bound value: statements keep their text, and stay prepared, whatever the number of rows.

type ColumnType = 'text' | 'bigint'

const text = (written: string): Statement => sql([written])

/**
 * Objects as a table named `record` with these columns. Few, as most requests write them, are bound value by value in SQLite,
 * which takes half the time of JSON.
 */
export function recordsOf(columns: Record<string, ColumnType>) {
  const names = Object.keys(columns)
  const read = text(names.map((key) => `value ->> '${key}' ${key}`).join(', '))
  const types = text(names.map((key) => `${key} ${columns[key]}`).join(', '))
  const named = text(names.map((key, at) => `column${at + 1} ${key}`).join(', '))
  const row = ['(', ...names.slice(1).map(() => ', '), ')']
  return (rows: readonly object[]): Statement => {
    const json = () => JSON.stringify(rows)
    const values = () =>
      join(rows.map((each) => sql(row, ...names.map((key) => Reflect.get(each, key)))))
    return sql`${dialect({
      sqlite: () =>
        rows.length > 0 && rows.length <= maxBound
          ? sql`(select ${named} from (values ${values()})) record`
          : sql`(select ${read} from jsonb_each(${json()})) record`,
      postgres: () => sql`json_to_recordset(${json()}) as record (${types})`,
    })}`
  }
}

/** Each number of rows is a statement of its own. */
const maxBound = 4

/** Condition: equals one of these values. */
export const among = (values: readonly (string | number)[]): Statement =>
  sql`${dialect({
    sqlite: sql`in (select value from json_each(${JSON.stringify(values)}))`,
    postgres: sql`= any(${values})`,
  })}`

/** Selects these numbers as `id`. */
export const idsIn = (ids: readonly number[]): Statement =>
  sql`${dialect({
    sqlite: sql`select value id from json_each(${JSON.stringify(ids)})`,
    postgres: sql`select unnest(${ids}::bigint[]) id`,
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
