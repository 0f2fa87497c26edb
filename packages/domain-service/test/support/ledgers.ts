import { name, type Postgres, type Sql, sql } from '@domains-and-files/persistence'
import { onTestFinished } from 'vitest'
import { Ledger } from '../../src/ledger/ledger.ts'
import { Leases } from '../../src/ledger/replicas/leases.ts'
import { connect, serviceDatabase, setDatabaseTime } from './databases.ts'
import { openLedger } from './ledger.ts'

/** A ledger of one form, with a process that writes the domains of the tests. */
export interface TestLedger {
  ledger: Ledger
  sql: Sql
  /** Moves the ledger's clock to so many milliseconds from now. */
  setTime: (offsetMs: number) => Promise<void>
  /** The process that claimed and sent has ended. */
  endProcess: () => Promise<void>
}

const domains = ['example.com', 'shop.example.co.uk']

export const ledgers: [string, () => Promise<TestLedger>][] = [
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
]

async function openSqlite(): Promise<TestLedger> {
  let offset = 0
  const { ledger, database } = openLedger(() => Date.now() + offset)
  return {
    ledger,
    sql: database,
    setTime: async (offsetMs) => {
      offset = offsetMs
    },
    endProcess: async () => undefined,
  }
}

async function openPostgres(): Promise<TestLedger> {
  const { url, [Symbol.asyncDispose]: drop } = await serviceDatabase()
  const postgres = await connect(url)
  const options = { sql: postgres, ttlMs: 60_000, onError: () => undefined }
  const leases = new Leases({ ...options, holder: 'this replica' })
  const acquire = async () => {
    for (const domain of domains) await leases.tryAcquire(domain)
  }
  await acquire()
  onTestFinished(async () => {
    await leases.close()
    await postgres.close()
    await drop()
  })
  return {
    ledger: new Ledger({ sql: postgres, leases }),
    sql: postgres,
    setTime: async (offsetMs) => {
      await setDatabaseTime(postgres, offsetMs)
    },
    endProcess: () => leases.close(),
  }
}

/** A ledger that only reads. */
export function readerOf(postgres: Postgres): Ledger {
  const options = { sql: postgres, holder: 'nobody', ttlMs: 60_000, onError: () => undefined }
  return new Ledger({ sql: postgres, leases: new Leases(options) })
}

/** How many zones are stored. */
export async function countZones({ sql: database }: Pick<TestLedger, 'sql'>): Promise<number> {
  const row = await database.get<{ n: number }>(sql`select count(*) as n from ${name('zones')}`)
  return row?.n ?? 0
}
