import { randomBytes } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../harness/finding.ts'
import { type Program, run } from '../harness/program.ts'
import { alternate } from '../harness/rounds.ts'
import { bearer, type Service, startDomains, startStatic, upload } from '../harness/services.ts'
import { cores } from '../harness/settings.ts'
import { load } from '../harness/wrk.ts'

/** Resident memory of both services: after the start, and the peak under each load. */
export async function measureMemory(folder: string): Promise<Finding[]> {
  return [...(await measureStatic(folder)), ...(await measureDomains(folder))]
}

async function measureStatic(folder: string): Promise<Finding[]> {
  await using service = await startStatic(folder)
  const started = service.memory().now
  for (let file = 0; file < 1000; file += 1) {
    await upload(service, pathOf(file), randomBytes(file % 10 === 0 ? 256 * 1024 : 1024))
  }
  await upload(service, 'photo.jpg', randomBytes(100 * 1024))
  await upload(service, 'film.mp4', randomBytes(10 * 1024 * 1024))
  const env = { FILES: '1000', FROM: '0' }
  const small = await peakOf(service, () => load({ url: service.url, script: 'scattered.lua', env }))
  const large = await peakOf(service, () => load({ url: `${service.url}/static/photo.jpg` }))
  const streamed = await peakOf(service, () => load({ url: `${service.url}/static/film.mp4` }))
  const stored = await peakOf(service, () => uploadLarge(service, folder))
  const limit = 200
  return [
    memoryFinding('static-service: memory after start', started),
    memoryFinding('static-service: memory, 1000 files of 1 and 256 KiB read', small, limit),
    memoryFinding('static-service: memory, 100 KiB read', large, limit),
    memoryFinding('static-service: memory, 10 MiB read', streamed, limit),
    memoryFinding('static-service: memory, 1 GiB stored', stored),
  ]
}

async function measureDomains(folder: string): Promise<Finding[]> {
  await using both = await startDomains(folder, { delayMs: 0 })
  const { service } = both
  const url = `${service.url}/api/domains/alder-and-finch.com/dns/hosts`
  const started = service.memory().now
  const cached = await peakOf(service, () => load({ url, headers: bearer(service) }))
  const headers = { ...bearer(service), 'cache-control': 'no-cache' }
  const fresh = await peakOf(service, () => load({ url, headers }))
  return [
    memoryFinding('domain-service: memory after start', started),
    memoryFinding('domain-service: memory, hosts read, cached', cached),
    memoryFinding('domain-service: memory, hosts read, not cached', fresh),
  ]
}

/** Time to the first healthy response: on an empty folder, where the first admin is created, and on a used one. */
export async function measureStart(folder: string): Promise<Finding[]> {
  let empties = 0
  const nextEmpty = () => {
    empties += 1
    return join(folder, `empty-${empties}`)
  }
  const contenders = {
    'static-service: first start': () => timeStart(startStatic(nextEmpty())),
    'static-service: later start': () => timeStart(startStatic(folder)),
    'domain-service: first start': () => timeDomainStart(nextEmpty()),
    'domain-service: later start': () => timeDomainStart(folder),
  }
  await timeStart(startStatic(folder))
  await timeDomainStart(folder)
  const figures = await alternate(contenders)
  return Object.entries(figures).map(([work, ours]) => ({
    work: `${work} to healthy`,
    unit: 'ms',
    ours,
    goal: { of: 'figure', atMost: 450 },
  }))
}

async function timeStart(starting: Promise<Program>): Promise<number> {
  await using program = await starting
  return program.startedIn
}

async function timeDomainStart(folder: string): Promise<number> {
  await using both = await startDomains(folder, { delayMs: 0 })
  return both.service.startedIn
}

async function peakOf(program: Program, act: () => Promise<unknown>): Promise<number> {
  program.resetPeak()
  await act()
  return program.memory().peak
}

function memoryFinding(work: string, bytes: number, atMost?: number): Finding {
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
