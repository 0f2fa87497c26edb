import type { Sql, SqlTransaction } from '../sql/sql.ts'
import { dialect, join, name, type Statement, sql } from '../sql/statement.ts'
import type { Row, Table } from './archive.ts'

/** A table of both databases, with the same columns in each. */
export interface SqlTable {
  name: string
  /** The columns of a unique key, in order. */
  key: string[]
  /** Whether its `id` is an identity: numbers of rows that were deleted are not given again. */
  hasIdentity?: boolean
}

/** The rows of tables as of one moment, and the last number of each identity. */
export function readTables(snapshot: SqlTransaction, tables: SqlTable[]): Table[] {
  const identities = tables.filter(({ hasIdentity }) => hasIdentity)
  return [
    ...tables.map((table) => ({ name: table.name, rows: () => readRows(snapshot, table) })),
    { name: identityTable, rows: () => readIdentities(snapshot, identities) },
  ]
}

/** Adds rows of one table, in one transaction; those whose keys exist stay as they are. */
export async function writeRows(database: Sql, table: string, rows: Row[]): Promise<void> {
  if (table === identityTable) return writeIdentities(database, rows)
  const [first] = rows
  if (!first) return
  const columns = Object.keys(first)
  // Bound values are limited to 32,766 in SQLite and 65,535 in PostgreSQL.
  const maxRows = Math.floor(30_000 / columns.length)
  await database.transaction(async (transaction) => {
    for (let at = 0; at < rows.length; at += maxRows) {
      const values = rows
        .slice(at, at + maxRows)
        .map((row) => sql`(${join(columns.map((column) => row[column]))})`)
      await transaction.run(
        sql`insert into ${name(table)} (${columnList(columns)}) values ${join(values)} on conflict do nothing`,
      )
    }
  })
}

async function* readRows(snapshot: SqlTransaction, { name: table, key }: SqlTable) {
  const columns = columnList(key)
  let after: Statement = sql``
  for (;;) {
    const rows: Row[] = await snapshot.all(
      sql`select * from ${name(table)} ${after} order by ${columns} limit ${batchRows}`,
    )
    const last = rows.at(-1)
    if (!last) return
    yield rows
    after = sql`where (${columns}) > (${join(key.map((column) => last[column]))})`
  }
}

const batchRows = 200

const identityTable = 'identities'

async function* readIdentities(snapshot: SqlTransaction, tables: SqlTable[]) {
  const rows: Row[] = []
  for (const { name: table } of tables) {
    const found = await snapshot.get<{ last: number | null }>(
      sql`${dialect({
        sqlite: sql`select seq last from sqlite_sequence where name = ${table}`,
        postgres: sql`select last_value - (not is_called)::int last from ${name(`${table}_id_seq`)}`,
      })}`,
    )
    if (found?.last) rows.push({ table, last: found.last })
  }
  yield rows
}

async function writeIdentities(database: Sql, rows: Row[]) {
  for (const { table, last } of rows) {
    await database.transaction((transaction) =>
      setIdentity(transaction, String(table), Number(last)),
    )
  }
}

async function setIdentity(transaction: SqlTransaction, table: string, last: number) {
  if (transaction.dialect === 'postgres') {
    // A definition binds no values.
    await transaction.run(
      sql`alter sequence ${name(`${table}_id_seq`)} restart with ${sql([String(last + 1)])}`,
    )
    return
  }
  await transaction.run(sql`delete from sqlite_sequence where name = ${table}`)
  await transaction.run(sql`insert into sqlite_sequence (name, seq) values (${table}, ${last})`)
}

const columnList = (columns: string[]): Statement => join(columns.map(column))

// Names of columns are not qualified with the schema.
function column(identifier: string): Statement {
  if (!/^[a-z_][a-z0-9_]*$/.test(identifier)) throw new Error(`${identifier} is not a column`)
  return sql([identifier])
}
