import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, assertAlike } from '../harness/answer.ts'
import { compare, type Finding } from '../harness/finding.ts'
import { alternate } from '../harness/rounds.ts'
import { type Service, startStatic, upload } from '../harness/services.ts'
import { settings } from '../harness/settings.ts'
import { startStores } from '../harness/stores.ts'
import { load } from '../harness/wrk.ts'

const file = 'site/small.css'
const bytes = randomBytes(1024)

/** A small file, requested repeatedly: its row from PostgreSQL each time, beside the embedded service. */
export async function readShared(folder: string): Promise<Finding[]> {
  await using servers = new AsyncDisposableStack()
  const stores = servers.use(await startStores(folder))
  const shared = servers.use(await startStatic(join(folder, 'shared'), stores.env))
  const embedded = servers.use(await startStatic(join(folder, 'embedded')))
  const programs = { shared, embedded }
  for (const program of Object.values(programs)) await upload(program, file, bytes)
  // Within the second of its upload a file has no reliable date, and takes a slower path.
  await sleep(1100)
  assertAlike('embedded', await ask(urlOf(embedded)), await ask(urlOf(shared)))

  const cpu = { ours: [] as number[], embedded: [] as number[] }
  const figures = await alternate({
    ours: () => turn(shared, cpu.ours),
    embedded: () => turn(embedded, cpu.embedded),
  })
  const work = 'GET /static, 1 KiB, hot, row from PostgreSQL'
  return [
    ...compare({ work, unit: 'req/s' }, figures, { embedded: { of: 'ratio', atLeast: 0.5 } }),
    ...compare({ work, unit: 'µs CPU' }, cpu, { embedded: { of: 'ratio', atMost: 2 } }),
  ]
}

/** One turn of load; adds the microseconds of the service's CPU time per request. */
async function turn(service: Service, cpu: number[]): Promise<number> {
  const before = service.cpu()
  const perSecond = await load({ url: urlOf(service) })
  cpu.push(((service.cpu() - before) / (perSecond * settings.seconds)) * 1e6)
  return perSecond
}

const urlOf = ({ url }: Service) => `${url}/static/${file}`
