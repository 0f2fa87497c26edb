import { randomBytes } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from './finding.ts'
import { type Program, run } from './program.ts'
import { alternate } from './rounds.ts'
import { bearer, type Service, startDomains, startStatic, upload } from './services.ts'
import { cores } from './settings.ts'
import { load } from './wrk.ts'

// What is in the cache of the static service when it is full, beside which it may take 200 MiB under reads.
const cacheMebibytes = 64

/** The memory of both services: after their start, and the most under each load. */
export async function weigh(folder: string): Promise<Finding[]> {
  return [...(await weighStatic(folder)), ...(await weighDomains(folder))]
}

async function weighStatic(folder: string): Promise<Finding[]> {
  await using service = await startStatic(folder)
  const started = service.memory().now
  for (let file = 0; file < 1000; file += 1) {
    await upload(service, pathOf(file), randomBytes(file % 10 === 0 ? 256 * 1024 : 1024))
  }
  await upload(service, 'photo.jpg', randomBytes(100 * 1024))
  await upload(service, 'film.mp4', randomBytes(10 * 1024 * 1024))
  const env = { FILES: '1000', FROM: '0' }
  const small = await peakOf(service, () =>
    load({ url: service.url, script: 'scattered.lua', env }),
  )
  const large = await peakOf(service, () => load({ url: `${service.url}/static/photo.jpg` }))
  const streamed = await peakOf(service, () => load({ url: `${service.url}/static/film.mp4` }))
  const stored = await peakOf(service, () => uploadLarge(service, folder))
  const limit = 200 + cacheMebibytes
  return [
    weight('static-service: memory after its start', started),
    weight('static-service: memory, 1000 files of 1 and 256 KiB read', small, limit),
    weight('static-service: memory, 100 KiB read', large, limit),
    weight('static-service: memory, 10 MiB read', streamed, limit),
    weight('static-service: memory, 1 GiB stored', stored),
  ]
}

async function weighDomains(folder: string): Promise<Finding[]> {
  await using both = await startDomains(folder, { delayMs: 0 })
  const { service } = both
  const url = `${service.url}/api/domains/alder-and-finch.com/dns/hosts`
  const started = service.memory().now
  const cached = await peakOf(service, () => load({ url, headers: bearer(service) }))
  const headers = { ...bearer(service), 'cache-control': 'no-cache' }
  const fresh = await peakOf(service, () => load({ url, headers }))
  return [
    weight('domain-service: memory after its start', started),
    weight('domain-service: memory, hosts read, cached', cached),
    weight('domain-service: memory, hosts read, not cached', fresh),
  ]
}

/** From nothing to the first healthy answer: on an empty folder, where the first admin is made, and on a used one. */
export async function startCold(folder: string): Promise<Finding[]> {
  let empties = 0
  const nextEmpty = () => {
    empties += 1
    return join(folder, `empty-${empties}`)
  }
  const contenders = {
    'static-service: first start': () => timeStart(startStatic(nextEmpty())),
    'static-service: later start': () => timeStart(startStatic(folder)),
    'domain-service: first start': () => timeDomains(nextEmpty()),
    'domain-service: later start': () => timeDomains(folder),
  }
  await timeStart(startStatic(folder))
  await timeDomains(folder)
  const figures = await alternate(contenders)
  return Object.entries(figures).map(([work, ours]) => ({
    work: `${work} to healthy`,
    unit: 'ms',
    ours,
    goal: { of: 'figure', atMost: 700 },
  }))
}

async function timeStart(starting: Promise<Program>): Promise<number> {
  await using program = await starting
  return program.startedIn
}

async function timeDomains(folder: string): Promise<number> {
  await using both = await startDomains(folder, { delayMs: 0 })
  return both.service.startedIn
}

async function peakOf(program: Program, act: () => Promise<unknown>): Promise<number> {
  program.forgetPeak()
  await act()
  return program.memory().peak
}

function weight(work: string, bytes: number, atMost?: number): Finding {
  const ours = [bytes / 2 ** 20]
  return { work, unit: 'MiB', ours, ...(atMost && { goal: { of: 'figure', atMost } }) }
}

async function uploadLarge(service: Service, folder: string) {
  const file = join(folder, 'large.bin')
  await run(['dd', 'if=/dev/urandom', `of=${file}`, 'bs=1M', 'count=1024'], { core: cores.load })
  const form = new FormData()
  form.set('file', await openAsBlob(file), 'large.bin')
  const url = `${service.url}/api/files/upload`
  const answer = await fetch(url, { method: 'POST', headers: bearer(service), body: form })
  if (!answer.ok) throw new Error(`upload: ${answer.status}`)
}

const pathOf = (file: number) => `shelf-000/${String(file).padStart(6, '0')}.css`
