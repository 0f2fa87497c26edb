import { isDatabaseQuiet } from '../../../../test/support/postgres/pools.ts'
import { connect, replaceClock } from './databases.ts'
import type { FakeClock } from './fake-clock.ts'

/**
 * Makes the clock of the tables of a service the fake one, until disposal. What replicas hold and renew lives by another
 * clock, which goes on.
 */
export async function followClock(url: string, clock: FakeClock): Promise<AsyncDisposable> {
  const postgres = await connect(url)
  await postgres.query('create table if not exists domain_service.fake_clock (now bigint not null)')
  await postgres.query(
    `insert into domain_service.fake_clock select $1
       where not exists (select from domain_service.fake_clock)`,
    [Math.round(clock.now())],
  )
  await replaceClock(postgres, 'now_ms', 'select now from domain_service.fake_clock')
  const move = async (now: number) => {
    await postgres.query('update domain_service.fake_clock set now = $1', [Math.round(now)])
  }
  const stop = clock.follow({ move, isQuiet: () => isDatabaseQuiet(url) })
  return {
    [Symbol.asyncDispose]: async () => {
      stop()
      await postgres.close()
    },
  }
}
