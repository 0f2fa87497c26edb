import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask } from '../harness/answer.ts'
import { compare, type Finding } from '../harness/finding.ts'
import { alter, curl, makeLargeFile, megabytes, uploadAndDelete } from '../harness/large-file.ts'
import { run, script } from '../harness/program.ts'
import { alternate } from '../harness/rounds.ts'
import { startStatic } from '../harness/services.ts'
import { cores, settings } from '../harness/settings.ts'
import { load } from '../harness/wrk.ts'
import { startNginx } from '../peers/peers.ts'

const rounds = Math.min(settings.rounds, 3)

/** One file of 1 GiB, durable before the response. nginx does not fsync. */
export async function uploadLarge(folder: string): Promise<Finding[]> {
  const { ours, nginx, dav, close } = await startBoth(folder)
  await using _servers = { [Symbol.asyncDispose]: close }
  const file = await makeLargeFile(folder)
  const figures = await alternate(
    {
      ours: async () => {
        await alter(file)
        const seconds = await uploadAndDelete(ours, file)
        return megabytes / seconds
      },
      'limit: dd conv=fsync or SHA-256': async () => {
        await alter(file)
        const copy = join(folder, 'copy.bin')
        const written = await time(['dd', `if=${file}`, `of=${copy}`, 'bs=1M', 'conv=fsync'])
        const hashed = await time(['openssl', 'dgst', '-sha256', file])
        rmSync(copy)
        return megabytes / Math.max(written, hashed)
      },
      'nginx PUT, not durable': async () => {
        await alter(file)
        const seconds = await curl(`${nginx.url}/dav/large.bin`, ['-T', file])
        rmSync(join(dav, 'large.bin'))
        return megabytes / seconds
      },
    },
    rounds,
  )
  return compare({ work: 'upload of 1 GiB, durable', unit: 'MB/s' }, figures, {
    'limit: dd conv=fsync or SHA-256': { of: 'ratio', atLeast: 0.85 },
    'nginx PUT, not durable': { of: 'ratio', atLeast: 0.8 },
  })
}

/** One file of 1 GiB by tus, beside a PUT of it: in one PATCH, and in PATCHes of 8 MiB. The client is curl, for all of them. */
export async function uploadResumable(folder: string): Promise<Finding[]> {
  await using ours = await startStatic(folder)
  const file = await makeLargeFile(folder)
  const pieces = join(folder, 'pieces')
  mkdirSync(pieces)
  const { token } = ours
  const measure = async (upload: () => Promise<unknown>) => {
    await alter(file)
    await run(['split', '-b', String(partBytes), '-a', '3', '-d', file, join(pieces, 'p')])
    await run(['sync'])
    const began = performance.now()
    await upload()
    const seconds = (performance.now() - began) / 1000
    const headers = { authorization: `Bearer ${token}` }
    const deleted = await fetch(`${ours.url}/api/files/large.bin`, { method: 'DELETE', headers })
    if (!deleted.ok) throw new Error(`the file is not there: ${deleted.status}`)
    return megabytes / seconds
  }
  const send = async (requests: CurlRequest[]) => {
    const config = join(folder, 'requests')
    writeFileSync(config, requests.map((request) => curlConfig(request, token)).join('next\n'))
    await run(['curl', '-K', config], { core: cores.load })
  }
  const patch = (upload: string, from: string, offset: number) => ({
    method: 'PATCH',
    url: `${ours.url}${upload}`,
    from,
    headers: { ...tus, 'upload-offset': String(offset), 'content-type': offsetStream },
  })
  const figures = await alternate(
    {
      ours: () => measure(async () => send([patch(await createUpload(ours), file, 0)])),
      PUT: () =>
        measure(() => send([{ method: 'PUT', url: `${ours.url}/api/files/large.bin`, from: file, headers: {} }])),
      'PATCHes of 8 MiB': () =>
        measure(async () => {
          const upload = await createUpload(ours)
          const names = readdirSync(pieces).sort()
          await send(names.map((name, at) => patch(upload, join(pieces, name), at * partBytes)))
        }),
    },
    rounds,
  )
  const work = 'resumable upload of 1 GiB'
  const { 'PATCHes of 8 MiB': parts, PUT: put, ours: whole } = figures
  return [
    ...compare({ work, unit: 'MB/s' }, { ours: whole, PUT: put }, { PUT: { of: 'ratio', atLeast: 0.9 } }),
    ...compare(
      { work: `${work} in PATCHes of 8 MiB`, unit: 'MB/s' },
      { ours: parts, PUT: put },
      { PUT: { of: 'ratio', atLeast: 0.6 } },
    ),
  ]
}

interface CurlRequest {
  method: string
  url: string
  /** The file that is the body. */
  from: string
  headers: Record<string, string>
}

// One of the requests that curl sends over one connection.
function curlConfig({ method, url, from, headers }: CurlRequest, token: string): string {
  const all = { expect: '', authorization: `Bearer ${token}`, ...headers }
  const lines = Object.entries(all).map(([name, value]) => `header = "${name}: ${value}"\n`)
  return `silent\nshow-error\nfail\nrequest = ${method}\nupload-file = "${from}"\nurl = "${url}"\noutput = /dev/null\n${lines.join('')}`
}

const tus = { 'tus-resumable': '1.0.0' }
const offsetStream = 'application/offset+octet-stream'
const partBytes = 8_388_608

async function createUpload({ url, token }: { url: string; token: string }): Promise<string> {
  const response = await fetch(`${url}/api/uploads/`, {
    method: 'POST',
    headers: {
      ...tus,
      authorization: `Bearer ${token}`,
      'upload-length': String(2 ** 30),
      'upload-metadata': `path ${btoa('large.bin')}`,
    },
  })
  return response.headers.get('location') ?? ''
}

/** Files of 4 KiB over 16 connections, each durable before its response. nginx does not fsync. */
export async function uploadSmall(folder: string): Promise<Finding[]> {
  const { ours, nginx, dav, close } = await startBoth(folder)
  await using _servers = { [Symbol.asyncDispose]: close }
  let turn = 0
  const store = (url: string, env: Record<string, string>) => {
    turn += 1
    const all = { SIZE: '4096', FROM: String(turn), ...env }
    return load({ url, connections: 16, script: 'upload.lua', env: all })
  }
  const contenders = {
    ours: () => store(ours.url, { METHOD: 'POST', TO: '/api/files/upload', TOKEN: ours.token }),
    'limit: a bare loop': async () => {
      turn += 1
      const loop = join(folder, `loop-${turn}`)
      mkdirSync(loop)
      const seconds = String(settings.seconds)
      return Number(
        await run([...script('peers/durable-loop.ts'), loop, seconds], {
          env: { UV_THREADPOOL_SIZE: '16' },
        }),
      )
    },
    'nginx PUT, not durable': () => store(nginx.url, { METHOD: 'PUT', TO: '/dav/' }),
  }
  // Warm-up, and a check that the bytes arrived.
  await contenders.ours()
  const { body } = await ask(`${ours.url}/static/1-100.bin`)
  await contenders['nginx PUT, not durable']()
  const put = readFileSync(join(dav, '2-100.bin'))
  if (body.length !== 4096 || put.length !== 4096) throw new Error('the bytes sent are not there')
  const figures = await alternate(contenders)
  return compare({ work: 'uploads of 4 KiB, durable, 16 at once', unit: 'files/s' }, figures, {
    'limit: a bare loop': { of: 'ratio', atLeast: 0.6 },
  })
}

async function startBoth(folder: string) {
  const dav = join(folder, 'dav')
  mkdirSync(dav)
  const ours = await startStatic(folder)
  const nginx = await startNginx(folder, { root: folder, davRoot: dav })
  const close = async () => {
    await ours[Symbol.asyncDispose]()
    await nginx[Symbol.asyncDispose]()
  }
  return { ours, nginx, dav, close }
}

async function time(args: string[]): Promise<number> {
  const began = performance.now()
  await run(args)
  return (performance.now() - began) / 1000
}
