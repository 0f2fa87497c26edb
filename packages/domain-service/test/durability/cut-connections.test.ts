import { expect, test } from 'vitest'
import { PostgresProxy, type StatementFault } from '../../../../test/support/postgres/postgres-proxy.ts'
import { makeDatabase } from '../support/databases.ts'
import { type Service, start } from '../support/start.ts'

// CUT_POINTS=all is the long form: `npm run faults`. The short one breaks every eighth statement.
const step = process.env.CUT_POINTS === 'all' ? 1 : 8
const hosts = '/api/domains/example.com/dns/hosts'

// What the service asks in the background, and what authenticates a request.
const others = /^select 1$|\.(?:users|one_time|last_logins)\b|commits where/

/** Breaks one statement by its number from now on. Returns whether there was one. */
function breakStatement(proxy: PostgresProxy, number: number, fault: StatementFault) {
  let seen = 0
  proxy.onStatement = (sql) => {
    if (others.test(sql)) return undefined
    seen += 1
    return seen === number ? fault : undefined
  }
  return () => {
    proxy.onStatement = undefined
    return seen >= number
  }
}

/** Repeats a request until it is answered with something else than 503. */
async function insist(write: () => ReturnType<Service['call']>) {
  for (;;) {
    const answer = await write()
    if (answer.status !== 503) return answer
  }
}

test.each([
  ['lose', 'before it arrives'],
  ['hide', 'before its answer returns'],
] as const)(
  'connections that break (%s) at a statement of a write, %s, leave every write done once under its key',
  async (fault, _when) => {
    await using database = await makeDatabase()
    await using proxy = await PostgresProxy.open(database.url)
    await using service = await start({ databaseUrl: proxy.url })
    await service.sessionOf('admin')
    const wrong: unknown[] = []
    let count = 0

    for (let isBroken = true; isBroken; count++) {
      const name = `r${count}-`
      const body = { name: `${name}x`, address: '192.0.2.9' }
      const headers = { 'idempotency-key': name }
      const write = () => service.call('POST', `${hosts}/A`, { body, headers })
      const end = breakStatement(proxy, 1 + count * step, fault)

      const first = await write()
      isBroken = end()
      const repeated = await insist(write)

      const live = service.live().filter((row) => row.startsWith(name)).length
      if (live !== 1 || repeated.status !== 201 || first.status === 500)
        wrong.push({ count, live, first: first.status, repeated: repeated.status })
    }

    expect(wrong).toEqual([])
    // What a busy machine made too slow was refused, and `call` has repeated it.
    const statuses = `select status, count(*) from domain_service.changes
      where problem is null or problem not like '%answers so slowly%' group by status`
    expect(await database.postgres.query(statuses)).toEqual([{ status: 'confirmed', count }])
  },
)
