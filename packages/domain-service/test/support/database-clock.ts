import { setTimeout as wait } from 'node:timers/promises'
import { DatabaseUnavailableError, type Postgres } from '@domains-and-files/persistence'
import { connect } from './databases.ts'
import type { FakeClock } from './fake-clock.ts'

/**
 * Makes the clock by which the tables of a service live the fake one, until disposal. Replicas renew in no time what they
 * hold, as if they had done so while it passed. `isQuiet` tells whether the service asks nothing of the database.
 */
export async function followClock(
  url: string,
  clock: FakeClock,
  isQuiet: () => Promise<boolean>,
): Promise<AsyncDisposable> {
  const postgres = await connect(url)
  await replaceClock(postgres, clock.now())
  const stop = clock.follow({ move: (now) => move(postgres, Math.round(now)), isQuiet })
  return {
    [Symbol.asyncDispose]: async () => {
      stop()
      await postgres.close()
    },
  }
}

async function replaceClock(postgres: Postgres, now: number) {
  await postgres.query('create table if not exists domain_service.fake_clock (now bigint not null)')
  await postgres.query(
    `insert into domain_service.fake_clock select $1
       where not exists (select from domain_service.fake_clock)`,
    [now],
  )
  await postgres.query(
    `create or replace function domain_service.now_ms() returns bigint language sql volatile
       as $$ select now from domain_service.fake_clock $$`,
  )
}

const renewed = [
  { table: 'domain_service.leases', column: 'until', where: 'true' },
  { table: 'domain_service.call_holds', column: 'until', where: 'true' },
  { table: 'domain_service.call_waiters', column: 'until', where: 'true' },
  {
    table: 'domain_service.changes',
    column: 'awaited_until',
    where: "status in ('queued', 'sending')",
  },
]

const retryMs = 5

async function move(postgres: Postgres, now: number): Promise<void> {
  try {
    await postgres.transaction(async (transaction) => {
      // Waiting with some of the locks could deadlock with a service.
      const tables = renewed.map(({ table }) => table)
      await transaction.query(`lock table ${tables.join(', ')} in exclusive mode nowait`)
      for (const { table, column, where } of renewed) {
        await transaction.query(
          `update ${table} set ${column} = ${column} + $1 - now from domain_service.fake_clock
             where now < $1 and ${where}`,
          [now],
        )
      }
      await transaction.query('update domain_service.fake_clock set now = $1', [now])
    })
  } catch (error) {
    if (!(error instanceof DatabaseUnavailableError)) throw error
    await wait(retryMs)
    await move(postgres, now)
  }
}
