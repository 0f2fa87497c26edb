import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ask, demandAlike, toBare } from '../harness/answer.ts'
import { compare, type Finding, type Goal } from '../harness/finding.ts'
import type { Program } from '../harness/program.ts'
import { alternate } from '../harness/rounds.ts'
import { startStatic, upload } from '../harness/services.ts'
import { load } from '../harness/wrk.ts'
import { startBare, startCaddy, startFastifyStatic, startNginx } from '../peers/peers.ts'

interface Reading {
  work: string
  /** Where it lies, and how many bytes it has. */
  file: string
  size: number
  /** The peers by name, with what we ask of ourselves beside them. */
  goals: Partial<Record<Peer, Goal>>
  /** Asks again for what it has, and is told so. */
  isFresh?: boolean
}

type Peer = keyof typeof starters

const limit = 'limit: bare Fastify'

const starters = {
  [limit]: startBare,
  nginx: startNginx,
  caddy: startCaddy,
  '@fastify/static': startFastifyStatic,
}

/** One file, asked for again and again by 32 connections. */
export const readings = {
  'static-1k': {
    work: 'GET /static, 1 KiB, hot',
    file: 'site/small.css',
    size: 1024,
    goals: {
      [limit]: { of: 'ratio', atLeast: 0.85 },
      caddy: { of: 'ratio', atLeast: 2 },
      '@fastify/static': { of: 'ratio', atLeast: 5 },
      nginx: { of: 'ratio', atLeast: 0.5 },
    },
  },
  'static-100k': {
    work: 'GET /static, 100 KiB, hot',
    file: 'site/photo.jpg',
    size: 100 * 1024,
    goals: { nginx: { of: 'ratio', atLeast: 1.2 } },
  },
  'static-10m': {
    work: 'GET /static, 10 MiB, from the disk cache',
    file: 'site/film.mp4',
    size: 10 * 1024 * 1024,
    goals: {
      nginx: { of: 'ratio', atLeast: 0.9 },
      '@fastify/static': { of: 'ratio', atLeast: 2 },
    },
  },
  'static-304': {
    work: 'GET /static, 304 by If-None-Match',
    file: 'site/small.css',
    size: 1024,
    goals: { [limit]: { of: 'ratio', atLeast: 0.85 } },
    isFresh: true,
  },
} as const satisfies Record<string, Reading>

export async function read(reading: Reading, folder: string): Promise<Finding[]> {
  const { work, file, size, goals, isFresh = false } = reading
  await using servers = new AsyncDisposableStack()
  const root = join(folder, 'tree')
  const path = `/static/${file}`
  const bytes = randomBytes(size)
  mkdirSync(dirname(join(root, file)), { recursive: true })
  writeFileSync(join(root, file), bytes)
  const ours = servers.use(await startStatic(folder))
  await upload(ours, file, bytes)

  const whole = await ask(ours.url + path)
  if (!whole.body.equals(bytes)) throw new Error('ours gives other bytes than it was given')
  const headers = isFresh ? { 'if-none-match': whole.headers.etag ?? '' } : {}
  const wanted = await ask(ours.url + path, headers)
  const programs: Record<string, Program> = { ours }
  // Their names are those of the starters: Object.keys forgets that.
  for (const name of Object.keys(goals) as Peer[]) {
    const program =
      name === limit
        ? await startBare(folder, toBare(path, wanted))
        : await starters[name](folder, root)
    programs[name] = servers.use(program)
    demandAlike(name, await ask(program.url + path, headers), wanted)
  }

  const turns = Object.entries(programs).map(
    ([name, { url }]) => [name, () => load({ url: url + path, headers })] as const,
  )
  for (const { url } of Object.values(programs))
    await load({ url: url + path, headers, seconds: 2 })
  // `ours` stands first among the programs.
  const figures = await alternate(
    Object.fromEntries(turns) as Record<Peer | 'ours', () => Promise<number>>,
  )
  return compare({ work, unit: 'req/s' }, figures, goals)
}
