import type { DatabaseSync } from 'node:sqlite'

export interface TableOf {
  schema: string
  table: string
}

/** The names of a SQLite table's columns, in order. */
export const columnsOf = (sqlite: DatabaseSync, table: string): string[] =>
  sqlite
    .prepare('select name from pragma_table_info(?) order by cid')
    .all(table)
    .map(({ name }) => String(name))
