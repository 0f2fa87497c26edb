import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PostgresProxy } from '../../../../test/support/postgres/postgres-proxy.ts'
import { ServerProcess } from '../../../../test/support/postgres/server-process.ts'
import type { Postgres } from '../../src/index.ts'
import { addItem, type Outcome, openPostgres, outcomeOf, schema } from '../support/postgres.ts'

const writes = Number(process.env.FAULT_WRITES || 400)
const writers = 8

async function startServer() {
  const directory = mkdtempSync(join(tmpdir(), 'campaign-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const server = await ServerProcess.create(join(directory, 'server'))
  onTestFinished(() => server.stop())
  return server
}

const untilAnswers = (postgres: Postgres) =>
  expect.poll(() => postgres.query('select 1').catch(() => [])).toHaveLength(1)

test(`${writes} transactions with cut COMMITs and crashes of the server: nothing acknowledged is lost, nothing refused is done`, async () => {
  const server = await startServer()
  await using proxy = await PostgresProxy.open(server.urlOf('postgres'))
  await using postgres = await openPostgres(proxy.url, { maxConnections: writers })
  let commits = 0
  proxy.onCommit = () => {
    commits += 1
    if (commits % 23 === 0) return 'lose'
    return commits % 29 === 0 ? 'hide' : undefined
  }
  const outcomes = new Map<number, Outcome>()
  let crashing: Promise<void> = Promise.resolve()
  const crash = async () => {
    await server.stop('SIGQUIT')
    await server.start()
  }
  let next = 0
  const work = async () => {
    for (let id = next++; id < writes; id = next++) {
      if (id % 150 === 149) crashing = crashing.then(crash)
      const outcome = await outcomeOf(addItem(postgres, id))
      outcomes.set(id, outcome)
      // Else the rest would be refused while the server starts.
      if (outcome === 'refused') await untilAnswers(postgres)
    }
  }

  await Promise.all(Array.from({ length: writers }, work))
  await crashing
  proxy.onCommit = undefined

  await expect.poll(() => postgres.isAvailable).toBe(true)
  const rows = await postgres.query<{ id: number }>(`select id from ${schema}.items`)
  const stored = new Set(rows.map(({ id }) => id))
  const idsOf = (outcome: Outcome) => [...outcomes].flatMap(([id, it]) => (it === outcome ? id : []))
  process.stdout.write(
    `commits: ${idsOf('acknowledged').length} acknowledged, ${idsOf('refused').length} refused, ${idsOf('unknown').length} unknown\n`,
  )
  expect(outcomes.size).toBe(writes)
  expect(idsOf('acknowledged').filter((id) => !stored.has(id))).toEqual([])
  expect(idsOf('refused').filter((id) => stored.has(id))).toEqual([])
  expect(idsOf('acknowledged').length).toBeGreaterThan(writes / 2)
  expect(idsOf('refused').length).toBeGreaterThan(0)
})
