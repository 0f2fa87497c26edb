import { randomBytes } from 'node:crypto'
import { startBare } from '../peers/peers.ts'
import { ask, demandAlike, toBare } from './answer.ts'
import { compare, type Finding } from './finding.ts'
import { alternate } from './rounds.ts'
import { bearer, type Service, startDomains, startStatic, upload } from './services.ts'
import { load } from './wrk.ts'

const limit = 'limit: bare Fastify with @fastify/jwt'

/** What a file is, for who has a token. */
export async function describeFile(folder: string): Promise<Finding[]> {
  await using service = await startStatic(folder)
  await upload(service, 'site/photo.jpg', randomBytes(2048))
  const work = 'GET /api/files/{path} with token'
  return await beside(work, { folder, service, path: '/api/files/site/photo.jpg' })
}

/** The records of a domain from the cache, for who has a token. */
export async function describeZone(folder: string): Promise<Finding[]> {
  await using both = await startDomains(folder, { delayMs: 0 })
  const work = 'GET …/dns/hosts, cached, with token'
  const path = '/api/domains/alder-and-finch.com/dns/hosts'
  return await beside(work, { folder, service: both.service, path })
}

async function beside(
  work: string,
  { folder, service, path }: { folder: string; service: Service; path: string },
): Promise<Finding[]> {
  const url = service.url + path
  await ask(url, bearer(service))
  const wanted = await ask(url, bearer(service))
  if (wanted.status !== 200) throw new Error(`${path}: ${wanted.status}`)
  const json: unknown = JSON.parse(wanted.body.toString())
  const bareAnswer = { ...toBare(path, wanted), body: { json }, isGuarded: true }
  await using bare = await startBare(folder, bareAnswer)
  const bareHeaders = { authorization: `Bearer ${bare.token}` }
  demandAlike('the bare route', await ask(bare.url + path, bareHeaders), wanted)

  const contenders = {
    ours: () => load({ url, headers: bearer(service) }),
    [limit]: () => load({ url: bare.url + path, headers: bareHeaders }),
  }
  for (const warmUp of Object.values(contenders)) await warmUp()
  const figures = await alternate(contenders)
  return compare({ work, unit: 'req/s' }, figures, { [limit]: { of: 'ratio', atLeast: 0.8 } })
}
