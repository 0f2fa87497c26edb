import type { HttpError } from '@domains-and-files/http'
import { type Sql, SqliteSql, sql } from '@domains-and-files/persistence'
import { loginTables } from '../../src/auth-database.ts'
import { type Attempt, LoginLimit } from '../../src/login/login-limit.ts'
import { makeDatabase, schema } from './database.ts'

const few = { windowMs: 60_000, perPair: 2, perNetwork: 4, perUsername: 6 }

type Limits = Partial<typeof few>

/** Login limits in one database. Each `make` begins without attempts. */
export interface LimitFactory extends AsyncDisposable {
  make: (limits?: Limits) => Promise<TestLimit>
}

type TestLimit = Awaited<ReturnType<typeof testLimit>>

export const limitFactories: [string, () => Promise<LimitFactory>][] = [
  ['memory', openMemory],
  ['PostgreSQL', openPostgres],
]

async function openMemory(): Promise<LimitFactory> {
  const clock = { ms: 0 }
  const database = new SqliteSql({
    file: ':memory:',
    migrations: loginTables,
    now: () => clock.ms,
  })
  const advance = async (ms: number) => {
    clock.ms += ms
  }
  const make = async (limits: Limits = {}) => {
    await database.run(sql`delete from login_attempts`)
    return testLimit(database, limits, advance)
  }
  return { make, [Symbol.asyncDispose]: () => database.close() }
}

async function openPostgres(): Promise<LimitFactory> {
  const { database, ...rest } = await makeDatabase()
  const advance = async (ms: number) => {
    await database.query(`update ${schema}.login_attempts set at = at - $1::bigint`, [ms])
  }
  const make = async (limits: Limits = {}) => {
    await database.query(`truncate ${schema}.login_attempts`)
    return testLimit(database, limits, advance)
  }
  return { make, ...rest }
}

function testLimit(database: Sql, limits: Limits, advance: (ms: number) => Promise<void>) {
  const lockouts: unknown[] = []
  const warn = ({ limit }: { limit?: unknown }) => lockouts.push(limit)
  const limit = new LoginLimit(database, { ...few, ...limits }, { warn })
  const attempt = (username: string, address: string, isUser = true): Attempt => ({
    username,
    isUser,
    address,
  })
  const fail = async (username: string, address: string, { times = 1, isUser = true } = {}) => {
    for (let count = 0; count < times; count += 1)
      await limit.run(attempt(username, address, isUser), async () => false)
  }
  const succeed = (username: string, address: string) => limit.run(attempt(username, address), async () => true)
  // On a busy machine some seconds of the window may pass.
  const wait = async (username: string, address: string, isUser = true) => {
    const seconds = await secondsOf(limit.check(attempt(username, address, isUser)))
    return seconds > 1 ? Math.ceil(seconds / 30) * 30 : seconds
  }
  return { limit, lockouts, advance, fail, succeed, wait }
}

/** For how long a check refuses; 0 if it does not. */
export const secondsOf = (check: Promise<unknown>): Promise<number> =>
  check.then(
    () => 0,
    (error: HttpError) => Number(error.headers?.['retry-after']),
  )
