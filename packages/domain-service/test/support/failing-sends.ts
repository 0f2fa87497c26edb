import { join } from 'node:path'
import Database from 'better-sqlite3'
import { databaseName } from '../../src/ledger/schema.ts'
import { connect, databaseOf } from './databases.ts'

type Operation = 'insert' | 'update'

/** Makes every insert or update of a send fail, as a failing disk does. Returns what ends the failure. */
export async function failSends({ dataDir }: { dataDir: string }, operation: Operation) {
  const url = await databaseOf(dataDir)
  return url === undefined ? failInFile(dataDir, operation) : failInPostgres(url, operation)
}

async function failInFile(dataDir: string, operation: Operation) {
  const change = async (sql: string) => {
    const database = new Database(join(dataDir, databaseName))
    database.exec(sql)
    database.close()
  }
  await change(`create trigger failing before ${operation} on sends begin select raise(abort, 'disk fails'); end`)
  return () => change('drop trigger failing')
}

async function failInPostgres(url: string, operation: Operation) {
  const change = async (sql: string) => {
    await using postgres = await connect(url)
    await postgres.query(sql)
  }
  await change(
    `create function domain_service.fail() returns trigger language plpgsql
       as $$ begin raise exception 'disk fails' using errcode = 'io_error'; end $$`,
  )
  await change(
    `create trigger failing before ${operation} on domain_service.sends
       execute function domain_service.fail()`,
  )
  return () => change('drop trigger failing on domain_service.sends')
}
