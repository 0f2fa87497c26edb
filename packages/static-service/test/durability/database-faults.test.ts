import { randomInt } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Postgres } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { ServerProcess } from '../../../../test/support/postgres/server-process.ts'
import { findMiscounts } from '../../src/catalog/find-miscounts.ts'
import { startS3 } from '../support/s3/s3-server.ts'
import { type Outcomes, SharedWriter } from '../support/shared-writers.ts'
import { ask, logIn, type Service, start } from '../support/start.ts'

// DATABASE_WRITES=2500 is the long form: `npm run faults`.
const writes = Number(process.env.DATABASE_WRITES ?? 60)
const writesPerCut = 25
const writesPerRestart = 60
const replicaCount = 3

test(`${writes} writes to ${replicaCount} replicas, while PostgreSQL crashes and connections break in COMMIT: nothing acknowledged is lost`, async () => {
  await using stack = new AsyncDisposableStack()
  const server = await ServerProcess.create(await mkdtemp(join(tmpdir(), 'postgres-')))
  stack.defer(() => server.stop())
  const proxy = stack.use(await PostgresProxy.open(server.urlOf('postgres')))
  const s3 = stack.use(await startS3())
  const replicas: Service[] = []
  for (let at = 0; at < replicaCount; at += 1) {
    replicas.push(stack.use(await start({ env: { DATABASE_URL: proxy.url, ...s3.env } })))
  }
  const token = await logIn(replicas[0]?.port ?? 0, 'admin')
  const outcomes: Outcomes = { acknowledged: 0, refused: 0, unknown: 0, faults: [] }
  const done = { changes: 0, restarts: 0, cuts: 0, commits: 0 }
  proxy.onCommit = () => {
    if (randomInt(100) >= 15) return undefined
    done.commits += 1
    return randomInt(2) === 0 ? 'lose' : 'hide'
  }
  let restarting = Promise.resolve()
  const onChange = async () => {
    done.changes += 1
    if (done.changes % writesPerRestart === 0) {
      done.restarts += 1
      restarting = restarting.then(() => restart(server, done.restarts))
    } else if (done.changes % writesPerCut === 0) {
      done.cuts += 1
      proxy.cut()
    }
  }
  const pick = () => {
    const port = replicas[randomInt(replicaCount)]?.port ?? 0
    return { ask: (asked: Parameters<typeof ask>[1]) => ask(port, asked) }
  }
  const writers = Array.from({ length: 8 }, (_, at) => new SharedWriter(`w${at}`, { pick, token, onChange, outcomes }))

  const work = async (writer: SharedWriter) => {
    while (outcomes.acknowledged < writes) await writer.change()
  }
  await Promise.all(writers.map(work))
  await restarting
  proxy.onCommit = undefined

  for (const writer of writers) {
    for (const path of writer.paths) {
      await expect.poll(() => writer.check(path)).toBe(true)
    }
  }
  expect(outcomes.faults).toEqual([])
  expect(await miscountsIn(server.urlOf('postgres'))).toEqual([])
  process.stdout.write(`database faults: ${JSON.stringify({ ...outcomes, ...done })}\n`)
}, 3_600_000)

// By turns a crash, and a stop that ends every connection.
async function restart(server: ServerProcess, number: number) {
  await server.stop(number % 2 === 1 ? 'SIGQUIT' : 'SIGINT')
  await server.start()
}

async function miscountsIn(url: string) {
  const postgres = await Postgres.open({
    url,
    maxConnections: 1,
    timeoutMs: 150_000,
    schema: 'static_service',
    migrations: {},
    onError: () => undefined,
  })
  try {
    return await findMiscounts(postgres)
  } finally {
    await postgres.close()
  }
}
