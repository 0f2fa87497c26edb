import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  sampleInterruptions,
  uploadInterrupted,
} from '../../../packages/static-service/test/support/interrupted-uploads.ts'
import { startS3 } from '../../../packages/static-service/test/support/s3/s3-server.ts'
import { type Asked, ask } from '../../../packages/static-service/test/support/start.ts'
import { ServerProcess } from '../../support/postgres/server-process.ts'
import { runOnServer } from '../../support/postgres/test-database.ts'
import { Client } from '../support/client.ts'
import { seeDomains, seeFiles, useDomains, useFiles } from '../support/scenario.ts'
import { type Program, password, startProgram } from '../support/services.ts'
import { step, until } from '../support/step.ts'
import { startLoadBalancer } from './load-balancer.ts'
import { startPgBouncer } from './pgbouncer.ts'

// Replicas of both services on PostgreSQL (through PgBouncer) and S3, behind nginx: used, killed, and without database.
// UPLOAD_INTERRUPTIONS is the number of resumable uploads that a cut line interrupts, and of those that a kill does.

const folder = mkdtempSync(join(tmpdir(), 'replicas-'))
await using opened = new AsyncDisposableStack()
opened.defer(() => rmSync(folder, { recursive: true, force: true }))
const postgres = await ServerProcess.create(join(folder, 'postgres'))
opened.defer(() => postgres.stop())
const pooler = opened.use(await startPgBouncer(postgres.port))
const s3 = opened.use(await startS3())
const sandbox = opened.use(await startProgram('registrar-sandbox', { SANDBOX_RATE: 'off' }))
const shared = {
  ADMIN_USERNAME: 'boss',
  ADMIN_PASSWORD: password,
  JWT_SECRET: 'a secret that all replicas of this test share',
  TRUST_PROXY: '127.0.0.1',
  DATABASE_URL: `postgres://postgres@127.0.0.1:${pooler.port}/postgres`,
  DATABASE_DIRECT_URL: postgres.urlOf('postgres'),
}
const registrar = {
  REGISTRAR_URL: `http://127.0.0.1:${sandbox.port}/xml.response`,
  REGISTRAR_API_USER: 'sandbox',
  REGISTRAR_API_KEY: 'sandbox-key-for-development-only',
  REGISTRAR_CLIENT_IP: '127.0.0.1',
  REGISTRAR_RATE: '1000/minute',
  REGISTRAR_TIMEOUT_MS: '2000',
}
const start = async (service: string, number: number, env: Record<string, string>) => {
  const dataDir = join(folder, `${service}-${number}`)
  return opened.use(await startProgram(service, { ...shared, ...env, DATA_DIR: dataDir }))
}
const domainReplicas = await step('two domain services start together', () =>
  Promise.all([1, 2].map((number) => start('domain-service', number, registrar))),
)
const staticReplicas = await step('three static services start together', () =>
  Promise.all([1, 2, 3].map((number) => start('static-service', number, s3.env))),
)
const portsOf = (name: string, replicas: Program[]) =>
  replicas.map(({ port }, index) => [`${name}-${index + 1}`, port] as const)
const replicas = {
  ...Object.fromEntries(portsOf('domain-service', domainReplicas)),
  ...Object.fromEntries(portsOf('static-service', staticReplicas)),
  console: sandbox.port,
}
const front = opened.use(await startLoadBalancer(replicas))
const [domains, files] = [new Client(front.domainPort), new Client(front.staticPort)]

await step('writes and integrations reach one replica, as do the reads of a domain, or of a client', async () => {
  const counted = await Promise.all(['first', 'second'].map(startNamed))
  const [first, second] = counted.map(({ port }) => port)
  assert.ok(first && second)
  await using proxy = await startLoadBalancer({ ...replicas, 'domain-service-1': first, 'domain-service-2': second })
  const answeredBy = async (path: string, authorization: string, method = 'GET') =>
    (await new Client(proxy.domainPort).call(path, { method, headers: { authorization } })).text()
  const [seen, seenWriting] = [new Set<string>(), new Set<string>()]
  for (const number of Array(20).keys()) {
    const zone = `/api/domains/example${number}.com/dns/hosts`
    const byDomain = [await answeredBy(zone, 'Bearer a'), await answeredBy(`${zone}/A?name=www`, 'Bearer b')]
    const byClient = [await answeredBy('/api/changes', `Bearer ${number}`), await answeredBy('/', `Bearer ${number}`)]
    assert.equal(byDomain[0], byDomain[1])
    assert.equal(byClient[0], byClient[1])
    for (const name of [...byDomain, ...byClient]) seen.add(name)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      seenWriting.add(await answeredBy(`${zone}/A`, `Bearer ${number}`, method))
    for (const path of ['/nic/update?hostname=a', '/integrations/registrar/xml.response?ApiKey=a'])
      seenWriting.add(await answeredBy(path, `Bearer ${number}`))
  }
  assert.deepEqual([seen.size, seenWriting.size], [2, 1])
})

await step('one login is valid at every replica', async () => {
  for (const [client, replicas] of [[domains, domainReplicas] as const, [files, staticReplicas] as const]) {
    await client.logIn('boss', password)
    const headers = { authorization: `Bearer ${client.token}` }
    for (const { port } of replicas) await new Client(port).call('/api/auth/me', { headers })
  }
})
await step('records: read, added, replaced, restored', () => useDomains(domains))
await step('files: uploaded, listed, found, deleted', () => useFiles(files))

const interruptions = Number(process.env.UPLOAD_INTERRUPTIONS ?? 5)
let kills = 0
await step(`${interruptions} cuts and ${interruptions} kills interrupt uploads`, async () => {
  const token = files.token
  // A proxy of its own: it skips the killed replicas for a while, which the reads below must not meet.
  await using proxy = await startLoadBalancer(replicas)
  const { staticPort: port } = proxy
  const front = { port, ask: (asked: Asked) => ask(port, asked) }
  for (const [at, each] of sampleInterruptions(interruptions).entries())
    await uploadInterrupted(`f${at}.bin`, each, { next: () => front, kill: restartOne, token })
  const [left] = await query<{ unfinished: number }>(
    'select count(*)::int unfinished from static_service.uploads where outcome is null',
  )
  assert.equal(left?.unfinished, 0)
})
const before = [await seeDomains(domains), await seeFiles(files)]

await step('no read fails while a replica of the static service is killed', async () => {
  const reading = readAll(files, ['/static/notes/hello.txt'], 600)
  await staticReplicas[0]?.crash()
  return `${await reading} reads`
})
await step('no read fails while a replica of the domain service is killed', async () => {
  // nginx sends the requests for a domain to one replica.
  const { domains: listed } = await domains.json('/api/domains?page_size=20')
  assert.ok(Array.isArray(listed) && listed.length > 1)
  const reading = readAll(
    domains,
    listed.map(({ name }) => `/api/domains/${name}/dns/hosts`),
    300,
  )
  await domainReplicas[0]?.crash()
  return `${await reading} reads`
})
await step('the others go on with all that was stored', async () => {
  assert.deepEqual([await seeDomains(domains), await seeFiles(files)], before)
})
await step('without PostgreSQL they respond 503', async () => {
  await postgres.stop('SIGQUIT')
  for (const client of [domains, files]) {
    const refused = await client.json('/api/auth/me', { status: 503 })
    assert.equal(refused.code, 'unavailable')
    await until('health is unavailable', () => isHealth(client, 503))
  }
})
await step('they recover by themselves', async () => {
  await postgres.start()
  for (const client of [domains, files]) await until('it is healthy', () => isHealth(client, 200))
  assert.deepEqual([await seeDomains(domains), await seeFiles(files)], before)
})

/** A server that answers with its name. */
async function startNamed(name: string): Promise<{ port: number }> {
  const server = createServer((_request, response) => response.end(name)).listen(0, '127.0.0.1')
  opened.defer(() => server.close().closeAllConnections())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  return address
}

function query<Row>(text: string): Promise<Row[]> {
  return runOnServer<Row>(shared.DATABASE_DIRECT_URL, text)
}

/** Kills the next replica and starts it again. What it had begun is taken over at once, as if ten seconds had passed. */
async function restartOne() {
  const at = kills % staticReplicas.length
  kills += 1
  const replica = staticReplicas[at]
  assert.ok(replica)
  await replica.crash()
  staticReplicas[at] = await start('static-service', at + 1, {
    ...s3.env,
    PORT: String(replica.port),
  })
  await query('update static_service.uploads set writer_until = 1 where writer_until > 0')
}

async function readAll(client: Client, paths: string[], times: number): Promise<number> {
  for (let count = 0; count < times; count += 1) await client.call(paths[count % paths.length] ?? '')
  return times
}

async function isHealth(client: Client, status: number): Promise<true | undefined> {
  return client.call('/health', { status }).then(
    () => true as const,
    () => undefined,
  )
}
