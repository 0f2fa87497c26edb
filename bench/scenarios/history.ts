import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { compare, type Finding } from '../harness/finding.ts'
import { curl } from '../harness/large-file.ts'
import { run } from '../harness/program.ts'
import { alternate, type Turn } from '../harness/rounds.ts'
import { bearer, type Service, startStatic } from '../harness/services.ts'
import { cores, settings } from '../harness/settings.ts'
import { load } from '../harness/wrk.ts'
import { measureLists } from './catalog-worker.ts'

const nothingKept = { KEEP_HISTORY_DAYS: '0', KEEP_VERSIONS: '0' }

/** Replacing uploads, deletions and look-ups while the past is kept, beside a service that keeps none of it. */
export async function keepHistory(folder: string): Promise<Finding[]> {
  await using ours = await startStatic(join(folder, 'ours'))
  await using other = await startStatic(join(folder, 'other'), nothingKept)
  const measureBoth = async (work: string, unit: string, turn: (service: Service) => Turn) => {
    const contenders = { ours: turn(ours), 'nothing kept': turn(other) }
    for (const warmUp of Object.values(contenders)) await warmUp()
    const goal = { of: 'ratio', atLeast: 0.95 } as const
    return compare({ work, unit }, await alternate(contenders), { 'nothing kept': goal })
  }
  return [
    ...(await measureBoth('uploads of 4 KiB over files, history kept', 'files/s', replaceFiles)),
    ...(await measureBoth('deletions, history kept', 'files/s', deleteFiles)),
    ...(await measureBoth('GET /api/files/{path}, history kept', 'req/s', (service) => () => {
      const url = `${service.url}/api/files/same-100.bin`
      return load({ url, headers: bearer(service) })
    })),
  ]
}

// The same names in each turn, with other contents.
function replaceFiles({ url, token }: Service): Turn {
  let turn = 0
  return () => {
    turn += 1
    const fill = String.fromCharCode(97 + (turn % 26))
    const script = { METHOD: 'POST', TO: '/api/files/upload', SIZE: '4096', FROM: 'same' }
    const env = { ...script, FILL: fill, TOKEN: token }
    return load({ url, connections: 16, script: 'upload.lua', env })
  }
}

function deleteFiles(service: Service): Turn {
  const names = Array.from({ length: 2000 }, (_, at) => `deleted/${at}.txt`)
  const headers = bearer(service)
  return async () => {
    for (let from = 0; from < names.length; from += 100) {
      const form = new FormData()
      for (const name of names.slice(from, from + 100)) form.append('files', new Blob([name]), name)
      await demand(fetch(`${service.url}/api/files/upload/batch`, { method: 'POST', headers, body: form }))
    }
    const left = [...names]
    const work = async () => {
      for (let name = left.pop(); name !== undefined; name = left.pop())
        await demand(fetch(`${service.url}/api/files/${name}`, { method: 'DELETE', headers }))
    }
    const began = performance.now()
    await Promise.all(Array.from({ length: 16 }, work))
    return names.length / ((performance.now() - began) / 1000)
  }
}

async function demand(asked: Promise<Response>): Promise<Record<string, unknown>> {
  const response = await asked
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

/** Listing and search at a million files, with as many past rows beside without. */
export async function listWithPast(): Promise<Finding[]> {
  const found = await measureLists(1_000_000, settings.rounds)
  return Object.entries(found).map(([query, { past, none }]) => ({
    work: `catalog of 1,000,000 files with as many past ones: ${query}`,
    unit: 'ms, p50 after a change',
    ours: past,
    other: { name: 'without the past', figures: none },
    goal: { of: 'ratio', atMost: 1.1 },
  }))
}

/** A tar of 5,000 files, 100 MB, beside `tar x` and `sync`; then 20,000 files from another directory. */
export async function replaceTrees(folder: string): Promise<Finding[]> {
  await using ours = await startStatic(folder)
  const source = join(folder, 'source')
  const tar = join(folder, 'site.tar')
  const figures = await alternate({
    ours: async () => {
      await makeTar(source, tar)
      const headers = ['-H', `authorization: Bearer ${ours.token}`]
      // With -T, curl adds the file's name to a URL that ends in a slash.
      const args = [...headers, '-X', 'PUT', '--data-binary', `@${tar}`]
      return 100 / (await curl(`${ours.url}/api/trees/site/`, args))
    },
    'tar x + sync': async () => {
      await makeTar(source, tar)
      const target = join(folder, 'unpacked')
      mkdirSync(target)
      const began = performance.now()
      await run(['sh', '-c', `tar xf ${tar} -C ${target} && sync -f ${target}`])
      const seconds = (performance.now() - began) / 1000
      rmSync(target, { recursive: true })
      return 100 / seconds
    },
  })
  return [
    ...compare({ work: 'deploy of a tar, 5,000 files, 100 MB', unit: 'MB/s' }, figures, {
      'tar x + sync': { of: 'ratio', atLeast: 0.5 },
    }),
    await copyTree(ours),
  ]
}

// New contents in each turn, and no dirty pages left for it.
async function makeTar(source: string, tar: string) {
  rmSync(source, { recursive: true, force: true })
  mkdirSync(source)
  const split = `head -c 100000000 /dev/urandom | split -b 20000 -a 4 - ${source}/f`
  await run(['sh', '-c', `${split} && tar cf ${tar} -C ${source} . && sync`], { core: cores.load })
}

async function copyTree(service: Service): Promise<Finding> {
  const headers = bearer(service)
  const put = (directory: string, body: string) =>
    demand(fetch(`${service.url}/api/trees/${directory}`, { method: 'PUT', headers, body }))
  for (const number of [1, 2, 3, 4]) {
    const { files } = await put(`many/${number}/`, '{"from":"site/"}')
    if (files !== 5000) throw new Error(`${files} files were deployed`)
  }
  const seconds: number[] = []
  for (const target of ['one', 'two', 'three']) {
    const began = performance.now()
    const { added } = await put(`${target}/`, '{"from":"many/"}')
    if (added !== 20_000) throw new Error(`${added} files were copied`)
    seconds.push((performance.now() - began) / 1000)
  }
  const goal = { of: 'figure', atMost: 2 } as const
  return { work: 'PUT of a tree from another, 20,000 files', unit: 's', ours: seconds, goal }
}
