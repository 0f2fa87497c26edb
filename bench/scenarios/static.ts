import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ask, assertAlike, toPrepared } from '../harness/answer.ts'
import { compare, type Finding, type Goal } from '../harness/finding.ts'
import type { Program } from '../harness/program.ts'
import { alternate } from '../harness/rounds.ts'
import { startStatic, upload } from '../harness/services.ts'
import { load } from '../harness/wrk.ts'
import { type AccessLogs, startCaddy, startFastifyStatic, startNginx, startPlainHttp } from '../peers/peers.ts'
import type { PreparedResponse } from '../peers/prepared-response.ts'

interface Reading {
  work: string
  /** Its path and its size in bytes. */
  file: string
  size: number
  logs: AccessLogs
  /** What ours is compared with, and the goals. */
  goals: Partial<Record<Peer, Goal>>
  /** Sends If-None-Match with the file's tag. */
  isConditional?: boolean
}

interface PeerInput {
  folder: string
  root: string
  logs: AccessLogs
  response: PreparedResponse
}

const plain = 'limit: node:http, no log'

const starters = {
  [plain]: ({ folder, response }: PeerInput) => startPlainHttp(folder, response),
  nginx: ({ folder, ...options }: PeerInput) => startNginx(folder, options),
  caddy: ({ folder, ...options }: PeerInput) => startCaddy(folder, options),
  '@fastify/static': ({ folder, ...options }: PeerInput) => startFastifyStatic(folder, options),
}

type Peer = keyof typeof starters

const atLeast = (ratio: number): Goal => ({ of: 'ratio', atLeast: ratio })
const small = { file: 'site/small.css', size: 1024 }

/** One file, requested repeatedly by 32 connections. */
export const readings = {
  'static-1k': {
    ...small,
    work: 'GET /static, 1 KiB, hot',
    logs: 'on',
    goals: {
      [plain]: atLeast(0.85),
      caddy: atLeast(2.5),
      '@fastify/static': atLeast(5),
      nginx: atLeast(0.45),
    },
  },
  'static-1k-silent': {
    ...small,
    work: 'GET /static, 1 KiB, hot, no logs',
    logs: 'off',
    goals: {
      [plain]: atLeast(0.85),
      caddy: atLeast(2),
      nginx: atLeast(0.45),
    },
  },
  'static-100k': {
    work: 'GET /static, 100 KiB, hot',
    file: 'site/photo.jpg',
    size: 100 * 1024,
    logs: 'on',
    goals: { nginx: atLeast(1) },
  },
  'static-10m': {
    work: 'GET /static, 10 MiB, from the page cache',
    file: 'site/film.mp4',
    size: 10 * 1024 * 1024,
    logs: 'on',
    goals: { nginx: atLeast(1), '@fastify/static': atLeast(2) },
  },
  'static-304': {
    ...small,
    work: 'GET /static, 304 by If-None-Match',
    logs: 'on',
    goals: { [plain]: atLeast(0.9) },
    isConditional: true,
  },
} as const satisfies Record<string, Reading>

export async function read(reading: Reading, folder: string): Promise<Finding[]> {
  const { work, file, goals, logs } = reading
  await using servers = new AsyncDisposableStack()
  const root = join(folder, 'tree')
  const path = `/static/${file}`
  const env: Record<string, string> = logs === 'on' ? {} : { LOG_LEVEL: 'silent' }
  const ours = servers.use(await startStatic(folder, env))
  const headers = await storeFile(reading, ours, root)
  const response = await ask(ours.url + path, headers)
  const programs: Record<string, Program> = { ours }
  // The keys are peers, which Object.keys does not know.
  for (const name of Object.keys(goals) as Peer[]) {
    const input = { folder, root, logs, response: toPrepared(path, response) }
    const program = servers.use(await starters[name](input))
    programs[name] = program
    assertAlike(name, await ask(program.url + path, headers), response)
  }
  const loads = Object.entries(programs).map(
    ([name, { url }]) => [name, () => load({ url: url + path, headers })] as const,
  )
  for (const { url } of Object.values(programs)) await load({ url: url + path, headers, seconds: 2 })
  // The keys are `ours` and the peers, which Object.fromEntries does not know.
  const turns = Object.fromEntries(loads) as Record<Peer | 'ours', () => Promise<number>>
  return compare({ work, unit: 'req/s' }, await alternate(turns), goals)
}

/** Stores the file for ours and for the peers; returns the headers of the requests to measure. */
async function storeFile(
  { file, size, isConditional = false }: Reading,
  ours: Awaited<ReturnType<typeof startStatic>>,
  root: string,
): Promise<Record<string, string>> {
  const bytes = randomBytes(size)
  mkdirSync(dirname(join(root, file)), { recursive: true })
  writeFileSync(join(root, file), bytes)
  await upload(ours, file, bytes)
  const url = `${ours.url}/static/${file}`
  const whole = await ask(url)
  if (!whole.body.equals(bytes)) throw new Error('ours serves other bytes than were uploaded')
  await untilDated(url)
  return isConditional ? { 'if-none-match': whole.headers.etag ?? '' } : {}
}

// In the second of its upload a file has no date, and later requests take another path (RFC 9110, 8.8.2.2).
async function untilDated(url: string) {
  while (!(await ask(url)).headers['last-modified']) {
    await new Promise((wake) => setTimeout(wake, 50))
  }
}
