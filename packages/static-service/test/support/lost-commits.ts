import type { Postgres } from '@domains-and-files/persistence'

/**
 * Keeps all rows of the service as they are now. The returned function puts them back: what was committed since is lost,
 * as where a standby is promoted that has not received it.
 */
export async function keepRows(postgres: Postgres): Promise<() => Promise<void>> {
  const found = await postgres.query<{ table: string }>(
    `select quote_ident(tablename) "table" from pg_tables where schemaname = '${postgres.schema}'`,
  )
  const tables = found.map(({ table }) => table)
  await postgres.query('create schema kept')
  for (const table of tables) await postgres.query(`create table kept.${table} as table ${postgres.schema}.${table}`)
  return () =>
    postgres.transaction(async (transaction) => {
      await transaction.query(`truncate ${tables.map((table) => `${postgres.schema}.${table}`).join(', ')}`)
      for (const table of tables) await transaction.query(`insert into ${postgres.schema}.${table} table kept.${table}`)
    })
}
