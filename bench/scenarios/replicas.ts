import { randomBytes } from 'node:crypto'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../harness/answer.ts'
import type { Finding, Goal } from '../harness/finding.ts'
import { alternate } from '../harness/rounds.ts'
import { type Service, startDomainService, startRegistrar, startStatic, upload } from '../harness/services.ts'
import { cores, settings } from '../harness/settings.ts'
import { startPostgres, startStores } from '../harness/stores.ts'
import { load } from '../harness/wrk.ts'
import { PlainClient } from '../peers/registrar-client.ts'
import { addAtOnce, clearCalls, countCalls, listPlain } from './domains.ts'

const path = 'site/small.css'
const atLeast: Goal = { of: 'ratio', atLeast: 1.7 }

/**
 * A hot file at two replicas at once, beside one. With fewer than four cores the second replica shares one with
 * PostgreSQL and the load; what both could do is then seen by CPU time only.
 */
export async function readTwoReplicas(folder: string): Promise<Finding[]> {
  await using servers = new AsyncDisposableStack()
  const stores = servers.use(await startStores(folder))
  const hasCores = cpus().length >= 4
  const start = async (name: string, core: number) =>
    servers.use(await startStatic(join(folder, name), stores.env, core))
  const first = await start('first', cores.server)
  const second = await start('second', hasCores ? 2 : cores.load)
  await upload(first, path, randomBytes(1024))
  // Within the second of its upload a file has no reliable date, and takes a slower path.
  await sleep(1100)
  for (const { url } of [first, second]) await ask(`${url}/static/${path}`)

  const perCpuSecond = { one: [] as number[], two: [] as number[] }
  const { one, two } = await alternate({
    one: () => turn([first], perCpuSecond.one),
    two: () => turn([first, second], perCpuSecond.two),
  })
  const work = 'GET /static, 1 KiB, two replicas'
  const other = 'one replica'
  return [
    {
      work,
      unit: 'req/s',
      ours: two,
      other: { name: hasCores ? other : `${other}; ${cpus().length} cores for all`, figures: one },
      ...(hasCores && { goal: atLeast }),
    },
    {
      work,
      unit: 'req/CPU-s',
      ours: perCpuSecond.two,
      other: { name: other, figures: perCpuSecond.one },
      goal: atLeast,
    },
  ]
}

/** Load on all replicas at once; adds the sum of their requests per second of their own CPU time. */
async function turn(replicas: Service[], perCpuSecond: number[]): Promise<number> {
  const measured = await Promise.all(
    replicas.map(async (replica) => {
      const before = replica.cpu()
      const perSecond = await load({ url: `${replica.url}/static/${path}` })
      const cpu = replica.cpu() - before
      return { perSecond, perCpu: (perSecond * settings.seconds) / cpu }
    }),
  )
  perCpuSecond.push(measured.reduce((sum, { perCpu }) => sum + perCpu, 0))
  return measured.reduce((sum, { perSecond }) => sum + perSecond, 0)
}

/** A hundred concurrent additions to one domain at three replicas, and the registrar calls that they take. */
export async function addOverReplicas(folder: string): Promise<Finding[]> {
  await using servers = new AsyncDisposableStack()
  const delayMs = 50
  const registrar = servers.use(await startRegistrar(folder, delayMs))
  const { url } = servers.use(await startPostgres(join(folder, 'postgres')))
  const services: Service[] = []
  for (const name of ['first', 'second', 'third']) {
    const env = { DATABASE_URL: url, DATABASE_DIRECT_URL: url }
    services.push(servers.use(await startDomainService(join(folder, name), registrar, env)))
  }
  const [service] = services
  const domains = service ? await listPlain(service) : []
  const client = new PlainClient(`${registrar.url}/xml.response`)
  const calls: number[] = []
  const add = async (count: number) => {
    const domain = domains.pop() ?? 'no domain left'
    const before = (await client.read(domain)).length
    await clearCalls(registrar.url)
    const perSecond = await addAtOnce(services, { domain, count })
    calls.push(await countCalls(registrar.url))
    if ((await client.read(domain)).length !== before + count) throw new Error('records are lost')
    return perSecond
  }
  await add(10)
  calls.length = 0
  const perSecond: number[] = []
  for (let round = 0; round < Math.min(settings.rounds, 3); round += 1) {
    perSecond.push(await add(100))
  }
  await client.close()
  const work = `100 adds at once over three replicas, registrar at ${delayMs} ms`
  return [
    { work, unit: 'adds/s', ours: perSecond },
    { work, unit: 'calls', ours: calls, goal: { of: 'figure', atMost: 8 } },
  ]
}
