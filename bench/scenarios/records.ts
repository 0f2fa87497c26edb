import { randomBytes } from 'node:crypto'
import { ask, assertAlike, toPrepared } from '../harness/answer.ts'
import { compare, type Finding } from '../harness/finding.ts'
import { alternate } from '../harness/rounds.ts'
import { bearer, type Service, startDomains, startStatic, upload } from '../harness/services.ts'
import { load } from '../harness/wrk.ts'
import { startBare } from '../peers/peers.ts'

const limit = 'limit: bare Fastify with @fastify/jwt'

/** The record of a file, with a token. */
export async function readFileRecord(folder: string): Promise<Finding[]> {
  await using service = await startStatic(folder)
  await upload(service, 'site/photo.jpg', randomBytes(2048))
  const work = 'GET /api/files/{path} with token'
  return await compareWithBare(work, {
    folder,
    service,
    path: '/api/files/site/photo.jpg',
    minRatio: 0.8,
  })
}

/** The records of a domain from the cache, with a token. */
export async function readCachedZone(folder: string): Promise<Finding[]> {
  await using both = await startDomains(folder, { delayMs: 0 })
  const work = 'GET …/dns/hosts, cached, with token'
  const path = '/api/domains/alder-and-finch.com/dns/hosts'
  return await compareWithBare(work, { folder, service: both.service, path })
}

interface Comparison {
  folder: string
  service: Service
  path: string
  /** Of the limit; undefined: no goal. */
  minRatio?: number
}

async function compareWithBare(
  work: string,
  { folder, service, path, minRatio: atLeast }: Comparison,
): Promise<Finding[]> {
  const url = service.url + path
  await ask(url, bearer(service))
  const expected = await ask(url, bearer(service))
  if (expected.status !== 200) throw new Error(`${path}: ${expected.status}`)
  const json: unknown = JSON.parse(expected.body.toString())
  const prepared = { ...toPrepared(path, expected), body: { json }, isGuarded: true }
  await using bare = await startBare(folder, prepared)
  const bareHeaders = { authorization: `Bearer ${bare.token}` }
  assertAlike('the bare route', await ask(bare.url + path, bareHeaders), expected)

  const contenders = {
    ours: () => load({ url, headers: bearer(service) }),
    [limit]: () => load({ url: bare.url + path, headers: bareHeaders }),
  }
  for (const warmUp of Object.values(contenders)) await warmUp()
  const figures = await alternate(contenders)
  const goal = atLeast === undefined ? {} : { [limit]: { of: 'ratio', atLeast } as const }
  return compare({ work, unit: 'req/s' }, figures, goal)
}
