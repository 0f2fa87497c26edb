import { expect, test } from 'vitest'
import { testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { type Service, start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

/** So many replicas on one database, before one registrar. */
async function startReplicas(count: number, env: Record<string, string> = {}) {
  const stack = new AsyncDisposableStack()
  const database = stack.use(await testDatabase())
  const first = stack.use(await start({ databaseUrl: database.url, env }))
  const replicas: [Service, ...Service[]] = [first]
  while (replicas.length < count) {
    const { sandbox } = first
    replicas.push(stack.use(await start({ databaseUrl: database.url, sandbox, env })))
  }
  return { replicas, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a hundred adds of one domain at three replicas are all done, in at most eight calls', async () => {
  await using set = await startReplicas(3)
  const { replicas } = set
  const [first] = replicas
  await Promise.all(replicas.map((replica) => replica.sessionOf('admin')))

  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      replicas[n % 3]?.call('POST', `${hosts}/A`, {
        body: { name: `r${n}`, address: '192.0.2.9' },
      }),
    ),
  )

  expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([201]))
  expect(first.live()).toHaveLength(101)
  expect(first.commands().length).toBeLessThanOrEqual(8)
})
