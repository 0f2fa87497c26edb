import type { Postgres } from '@domains-and-files/persistence'
import { onTestFinished } from 'vitest'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { PostgresLedger } from '../../src/ledger/postgres/postgres-ledger.ts'
import { Leases } from '../../src/ledger/postgres/replicas/leases.ts'
import { ZoneVersions } from '../../src/ledger/postgres/zone-versions.ts'
import { connect, serviceDatabase, setDatabaseTime } from './databases.ts'
import { openLedger } from './ledger.ts'

/** A ledger of one implementation, with a process that writes the domains of the tests. */
export interface TestLedger {
  ledger: Ledger
  countZones: () => Promise<number>
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
  const count = database.prepare<[], number>('select count(*) from zones').pluck()
  return {
    ledger,
    countZones: async () => count.get() ?? 0,
    setTime: async (offsetMs) => {
      offset = offsetMs
    },
    endProcess: async () => undefined,
  }
}

async function openPostgres(): Promise<TestLedger> {
  const { url, [Symbol.asyncDispose]: drop } = await serviceDatabase()
  const postgres = await connect(url)
  const options = { postgres, ttlMs: 60_000, onError: () => undefined }
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
    ledger: new PostgresLedger({ postgres, leases, versions: new ZoneVersions(postgres) }),
    countZones: async () => {
      const [row] = await postgres.query<{ n: number }>(
        'select count(*) as n from domain_service.zones',
      )
      return row?.n ?? 0
    },
    setTime: async (offsetMs) => {
      await setDatabaseTime(postgres, offsetMs)
      for (const domain of domains) {
        const lease = leases.current(domain)
        if (lease) await leases.release(lease)
      }
      await acquire()
    },
    endProcess: () => leases.close(),
  }
}

/** A ledger that only reads. */
export function readerOf(postgres: Postgres): Ledger {
  const leases = new Leases({ postgres, holder: 'nobody', ttlMs: 60_000, onError: () => undefined })
  return new PostgresLedger({ postgres, leases, versions: new ZoneVersions(postgres) })
}
