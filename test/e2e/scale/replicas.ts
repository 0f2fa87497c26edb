import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
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

await step('one login is valid at every replica', async () => {
  for (const client of [domains, files]) {
    await client.logIn('boss', password)
    for (let count = 0; count < 8; count += 1) await client.call('/api/auth/me')
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
  const reading = readAll(files, '/static/notes/hello.txt', 600)
  await staticReplicas[0]?.crash()
  return `${await reading} reads`
})
await step('no read fails while a replica of the domain service is killed', async () => {
  const reading = readAll(domains, '/api/auth/me', 300)
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

async function readAll(client: Client, path: string, times: number): Promise<number> {
  for (let count = 0; count < times; count += 1) await client.call(path)
  return times
}

async function isHealth(client: Client, status: number): Promise<true | undefined> {
  return client.call('/health', { status }).then(
    () => true as const,
    () => undefined,
  )
}
