import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Program, run } from '../support/program.ts'
import type { Fault } from '../support/s3/s3-server.ts'
import { type SharedStores, startSharedStores } from '../support/shared-stores.ts'
import { type Outcomes, SharedWriter } from '../support/shared-writers.ts'
import { start } from '../support/start.ts'

// SHARED_WRITES=2500 is the long form: `npm run faults`.
const writes = Number(process.env.SHARED_WRITES ?? 80)
const writesPerKill = 40
const replicaCount = 3

const faults: Fault[] = [
  { kind: 'status', status: 503 },
  { kind: 'status', status: 500 },
  { kind: 'cut-request' },
  { kind: 'lost-response' },
  { kind: 'cut-response' },
  { kind: 'slow', ms: 300 },
]

// One call in twelve fails; at times all do.
function pickFault(calls: number): Fault | undefined {
  if (calls % 400 > 380) return { kind: 'status', status: 503 }
  return randomInt(12) === 0 ? faults[randomInt(faults.length)] : undefined
}

test(`${writes} writes to ${replicaCount} replicas that are killed, on a failing S3 store: nothing acknowledged is lost`, async () => {
  await using stores = await startSharedStores()
  await using replicas = await Replicas.start(stores)
  const token = await logIn(replicas)
  stores.s3.fault = () => pickFault(stores.s3.calls.length)
  const outcomes: Outcomes = { acknowledged: 0, refused: 0, unknown: 0, faults: [] }
  let done = 0
  const onChange = async () => {
    done += 1
    if (done % writesPerKill === 0) await replicas.killOne()
  }
  const writers = Array.from(
    { length: 8 },
    (_, at) => new SharedWriter(`w${at}`, { pick: () => replicas.pick(), token, onChange, outcomes }),
  )

  const work = async (writer: SharedWriter) => {
    while (outcomes.acknowledged < writes) await writer.change()
  }
  await Promise.all(writers.map(work))

  stores.s3.fault = () => undefined
  for (const writer of writers) {
    for (const path of writer.paths) await expect.poll(() => writer.check(path)).toBe(true)
  }
  expect(outcomes.faults).toEqual([])
  await sweepAll(stores)
  await expectWhole(stores)
  process.stdout.write(`shared storage: ${JSON.stringify({ ...outcomes, kills: replicas.kills })}\n`)
}, 3_600_000)

test('a download by a link that the store refuses does not count', async () => {
  await using stores = await startSharedStores()
  await using replica = await start({ env: stores.env })
  const large = Buffer.alloc(400_000, 'large ')
  await replica.put('large.bin', large)
  const { body } = await replica.call('POST', '/api/links', { json: { path: 'large.bin', downloads: 1 } })
  const download = () => replica.call('GET', String(body.url), { user: 'nobody' })
  stores.s3.fault = () => ({ kind: 'status', status: 503 })
  expect((await download()).body.code).toBe('unavailable')
  stores.s3.fault = () => undefined

  const answers = await Promise.all([download(), download()])

  expect(answers.map(({ status }) => status).sort()).toEqual([200, 404])
  expect(answers.find(({ status }) => status === 200)?.bytes).toEqual(large)
})

// A replica that just started on a busy machine may shed it.
async function logIn(replicas: Replicas): Promise<string> {
  const attempt = () =>
    replicas
      .pick()
      .logIn()
      .catch(() => '')
  let token = ''
  const found = async () => {
    token = await attempt()
    return token
  }
  await expect.poll(found).not.toBe('')
  return token
}

/** Replicas as processes of their own; one that was killed is started again. */
class Replicas implements AsyncDisposable {
  kills = 0
  readonly #env: Record<string, string>
  readonly #folder: string
  readonly #programs = new Map<number, Program>()
  readonly #starting = new Set<Promise<void>>()
  #isClosed = false

  static async start(stores: SharedStores): Promise<Replicas> {
    const folder = await mkdtemp(join(tmpdir(), 'static-replicas-'))
    const replicas = new Replicas(folder, {
      ...stores.env,
      GARBAGE_GRACE_S: '3', // Longer than a read takes, with every retry.
      MEMORY_CACHE_BYTES: '0',
    })
    for (let at = 0; at < replicaCount; at += 1) await replicas.#start(at)
    return replicas
  }

  private constructor(folder: string, env: Record<string, string>) {
    this.#folder = folder
    this.#env = env
  }

  pick(): Program {
    const running = [...this.#programs.values()]
    const program = running[randomInt(running.length)]
    if (!program) throw new Error('no replica runs')
    return program
  }

  /** Kills a replica in the middle of what it does, unless it is the only one. */
  async killOne(): Promise<void> {
    if (this.#programs.size < 2) return
    const [at, program] = [...this.#programs][randomInt(this.#programs.size)] ?? []
    if (at === undefined || !program) return
    this.#programs.delete(at)
    this.kills += 1
    await program.kill()
    const starting = this.#start(at).finally(() => this.#starting.delete(starting))
    this.#starting.add(starting)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.all(this.#starting)
    for (const program of this.#programs.values()) await program.kill()
    await rm(this.#folder, { recursive: true })
  }

  async #start(at: number) {
    this.#programs.set(at, await run(join(this.#folder, String(at)), this.#env))
  }
}

// As if the time of everything that waits for its deletion were over: the replicas sweep each second.
async function sweepAll(stores: SharedStores) {
  const waiting = async () => {
    await stores.query("update static_service.garbage set due_at = now() - interval '1 s'")
    const [left] = await stores.query<{ count: string }>('select count(*) count from static_service.garbage')
    return Number(left?.count)
  }
  await expect.poll(waiting, { interval: 1_500 }).toBe(0)
}

/** Rows and objects belong to each other one by one, and every count is exact. */
async function expectWhole(stores: SharedStores) {
  const rows = await stores.query<{ digest: string; object_key: string }>(
    'select digest, object_key from static_service.contents where coding = 0 and object_key is not null',
  )
  for (const { digest, object_key } of rows) {
    expect(await stores.s3.store.digestOf(object_key)).toBe(digest)
  }
  const known = await stores.query<{ object_key: string }>(
    'select object_key from static_service.contents where object_key is not null',
  )
  const stored = [...stores.s3.store.objects.keys()].filter((key) => key !== 'files/probe')
  expect(stored.sort()).toEqual(known.map(({ object_key }) => object_key).sort())
  const miscounts = await stores.query(
    `select digest, refs from static_service.blobs b
       where refs <> (select count(*) from static_service.files where digest = b.digest)
     union all select digest, -1 from static_service.files
       where digest not in (select digest from static_service.contents where coding = 0)
     union all select digest, -2 from static_service.contents
       where digest not in (select digest from static_service.blobs)
     union all select 'totals', file_count from static_service.directories
       where path = '' and (file_count, total_size) is distinct from
         (select (count(*), coalesce(sum(size), 0)::bigint) from static_service.files)`,
  )
  expect(miscounts).toEqual([])
}
