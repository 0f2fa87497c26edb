import type { Attempt, Lockout, LoginLimit } from '../../src/login/login-limit.ts'
import { MemoryLoginLimit } from '../../src/login/memory-login-limit.ts'
import { PostgresLoginLimit } from '../../src/postgres/postgres-login-limit.ts'
import { makeDatabase, schema } from './database.ts'

const few = { windowMs: 60_000, perPair: 2, perNetwork: 4, perUsername: 6 }

type Limits = Partial<typeof few>

/** Login limits of one implementation. Each `make` begins without attempts. */
export interface LimitFactory extends AsyncDisposable {
  make: (limits?: Limits) => Promise<TestLimit>
}

type TestLimit = Awaited<ReturnType<typeof testLimit>>

export const limitFactories: [string, () => Promise<LimitFactory>][] = [
  ['memory', async () => ({ make: makeMemoryLimit, [Symbol.asyncDispose]: async () => undefined })],
  ['PostgreSQL', openPostgresLimits],
]

export async function makeMemoryLimit(limits: Limits = {}) {
  const clock = { ms: 0 }
  const lockouts: Lockout[] = []
  const limit = new MemoryLoginLimit(
    { ...few, ...limits },
    () => clock.ms,
    (_attempt, lockout) => lockouts.push(lockout),
  )
  const advance = async (ms: number) => {
    clock.ms += ms
  }
  return testLimit(limit, lockouts, advance)
}

async function openPostgresLimits(): Promise<LimitFactory> {
  const { database, ...rest } = await makeDatabase()
  const make = async (limits: Limits = {}) => {
    await database.query(`truncate ${schema}.login_attempts`)
    const lockouts: Lockout[] = []
    const limit = new PostgresLoginLimit(database, { ...few, ...limits }, (_attempt, lockout) =>
      lockouts.push(lockout),
    )
    const advance = async (ms: number) => {
      await database.query(
        `update ${schema}.login_attempts set at = at - make_interval(secs => $1)`,
        [ms / 1000],
      )
    }
    return testLimit(limit, lockouts, advance)
  }
  return { make, ...rest }
}

function testLimit(limit: LoginLimit, lockouts: Lockout[], advance: (ms: number) => Promise<void>) {
  const attempt = (username: string, address: string, isUser = true): Attempt => ({
    username,
    isUser,
    address,
  })
  const fail = async (username: string, address: string, { times = 1, isUser = true } = {}) => {
    for (let count = 0; count < times; count += 1)
      await limit.run(attempt(username, address, isUser), async () => false)
  }
  const succeed = (username: string, address: string) =>
    limit.run(attempt(username, address), async () => true)
  // On a busy machine some seconds of the window may pass.
  const wait = async (username: string, address: string, isUser = true) => {
    const seconds = await limit.secondsToWait(attempt(username, address, isUser))
    return seconds > 1 ? Math.ceil(seconds / 30) * 30 : seconds
  }
  return { limit, lockouts, advance, fail, succeed, wait }
}
