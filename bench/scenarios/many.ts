import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask, assertAlike } from '../harness/answer.ts'
import { compare, type Finding } from '../harness/finding.ts'
import type { Program } from '../harness/program.ts'
import { alternate } from '../harness/rounds.ts'
import { bearer, type Service, startStatic } from '../harness/services.ts'
import { load } from '../harness/wrk.ts'
import { startFastifyStatic } from '../peers/peers.ts'

const files = 100_000
const perDirectory = 1000

/** 100,000 files of 1 KiB in an order that separates neighbours: from the disk, then from memory. */
export async function readMany(folder: string): Promise<Finding[]> {
  const kept = join(tmpdir(), `bench-tree-${files}`)
  const root = join(kept, 'plain')
  if (!existsSync(join(kept, 'made'))) await make({ folder, kept, root })
  const startOurs = () => startStatic(folder, { DATA_DIR: dataOf(kept) })
  const startTheirs = () => startFastifyStatic(folder, { root })
  await compareAnswers(startOurs, startTheirs)

  const cold = await alternate({
    ours: () => readCold(startOurs),
    '@fastify/static': () => readCold(startTheirs),
  })
  await using ours = await startOurs()
  await using theirs = await startTheirs()
  for (const { url } of [ours, theirs]) await load({ ...scattered(url), seconds: 20 })
  const warm = await alternate({
    ours: () => load(scattered(ours.url)),
    '@fastify/static': () => load(scattered(theirs.url)),
  })
  const goals = { '@fastify/static': { of: 'ratio', atLeast: 3 } } as const
  const work = 'GET /static, 100,000 files of 1 KiB'
  return [
    ...compare({ work: `${work}, cold`, unit: 'req/s' }, cold, goals),
    ...compare({ work: `${work}, warm`, unit: 'req/s' }, warm, goals),
  ]
}

async function compareAnswers(...starters: (() => Promise<Program>)[]) {
  const answers = []
  for (const start of starters) {
    await using program = await start()
    answers.push(await ask(program.url + pathOf(files - 1)))
  }
  const [ours, theirs] = answers
  if (ours && theirs) assertAlike('@fastify/static', theirs, ours)
}

async function readCold(start: () => Promise<Program>): Promise<number> {
  // Drops the page cache and directory entries; needs root (Documentation/admin-guide/sysctl/vm.rst).
  writeFileSync('/proc/sys/vm/drop_caches', '3')
  await using program = await start()
  return await load(scattered(program.url))
}

const scattered = (url: string) => ({
  url,
  script: 'scattered.lua',
  env: { FILES: String(files), FROM: String(Math.floor(Math.random() * files)) },
})

const dataOf = (kept: string) => join(kept, 'static-service')

const pathOf = (file: number) =>
  `/static/shelf-${String(Math.floor(file / perDirectory)).padStart(3, '0')}/${String(file).padStart(6, '0')}.css`

// Uploads through the API. It takes minutes, so the tree is kept for the next run.
async function make({ folder, kept, root }: { folder: string; kept: string; root: string }) {
  mkdirSync(kept, { recursive: true })
  const env = { DATA_DIR: dataOf(kept), MAX_BATCH_FILES: String(perDirectory) }
  await using service = await startStatic(folder, env)
  for (let first = 0; first < files; first += perDirectory) {
    const form = new FormData()
    for (let file = first; file < first + perDirectory; file += 1) {
      const name = pathOf(file).slice('/static/'.length)
      const bytes = Buffer.alloc(1024, `/* ${file} */ `)
      mkdirSync(join(root, name, '..'), { recursive: true })
      writeFileSync(join(root, name), bytes)
      form.append('files', new Blob([bytes]), name)
    }
    await uploadBatch(service, form)
    if (process.stderr.isTTY) process.stderr.write(`\r${first} of ${files}`)
  }
  mkdirSync(join(kept, 'made'))
}

async function uploadBatch(service: Service, body: FormData) {
  const answer = await fetch(`${service.url}/api/files/upload/batch`, {
    method: 'POST',
    headers: bearer(service),
    body,
  })
  if (!answer.ok) throw new Error(`batch: ${answer.status} ${await answer.text()}`)
  await answer.arrayBuffer()
}
