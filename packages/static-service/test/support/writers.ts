import { once } from 'node:events'
import { pathsOf, pickChange } from './changes.ts'
import type { Program } from './program.ts'
import type { ask } from './start.ts'

/** What is at a path: a content, or nothing. */
export type State = string | undefined

/** A service, in this process or in another. */
interface Askable {
  ask: (asked: Parameters<typeof ask>[1]) => ReturnType<typeof ask>
}

/**
 * One writer and what it knows of its own paths. `hoped` is what they are if the change that was running when the process
 * was killed did happen.
 */
export interface Writer {
  name: string
  known: Map<string, State>
  hoped: Map<string, State>
  versions: string[]
  /** Its last deploy, with what was there before and after. */
  deployed?: { change: number; before: Map<string, State>; after: Map<string, State> } | undefined
  /** What was there after its deploys and in its versions, by what `at` takes. */
  moments: Map<string, Map<string, State>>
  /** The changes that were running when the process was killed. */
  interrupted: string[]
}

export const makeWriters = (count: number): Writer[] =>
  Array.from({ length: count }, (_, at) => {
    const name = `writer-${at}`
    const [known, hoped, moments] = [new Map(), new Map(), new Map()]
    return { name, known, hoped, versions: [], moments, interrupted: [] }
  })

/**
 * All writers make one change after the other until the service is gone. `kill` runs once, up to `withinMs` after the first
 * change is acknowledged: however slow the machine, there is something to lose.
 * @returns how many changes were acknowledged.
 */
export async function writeUntilKilled(
  program: Program,
  { token, writers }: { token: string; writers: Writer[] },
  { kill, withinMs }: { kill: () => void; withinMs: number },
): Promise<number> {
  let killer: NodeJS.Timeout | undefined
  const onAcknowledged = () => {
    killer ??= setTimeout(kill, Math.random() * withinMs)
  }
  const writing = writers.map((writer) => writeUntilGone(program, token, writer, onAcknowledged))
  try {
    const counts = await Promise.all(writing)
    return counts.reduce((sum, count) => sum + count, 0)
  } catch (error) {
    clearTimeout(killer) // A service that is killed would not log all.
    throw new Error(`The service logged:\n${await endLog(program)}`, { cause: error })
  } finally {
    clearTimeout(killer)
  }
}

/** Makes one change after the other until the service is gone; returns how many were acknowledged. */
export async function writeUntilGone(
  program: Program,
  token: string,
  writer: Writer,
  onAcknowledged?: () => void,
): Promise<number> {
  for (let count = 0; ; count += 1) {
    const change = pickChange()
    try {
      await change({ program, token, writer })
    } catch (error) {
      if (!isHangUp(error)) throw error
      writer.interrupted.push(change.name)
      return count
    }
    for (const [path, state] of writer.hoped) writer.known.set(path, state)
    writer.hoped.clear()
    onAcknowledged?.()
  }
}

/** How often each kind of change was interrupted. */
export function countInterrupted(writers: Writer[]): Record<string, number> {
  const names = Object.groupBy(
    writers.flatMap(({ interrupted }) => interrupted),
    (name) => name,
  )
  return Object.fromEntries(Object.entries(names).map(([name, all = []]) => [name, all.length]))
}

/**
 * What is neither as it was acknowledged nor, all of it, as the writer's last change would have left it; empty if nothing
 * is lost.
 */
export async function findLosses(service: Askable, token: string, writer: Writer): Promise<string[]> {
  const seen = await look(service, writer)
  const before = pathsOf(writer.name).map((path) => writer.known.get(path))
  const after = pathsOf(writer.name).map((path) =>
    writer.hoped.has(path) ? writer.hoped.get(path) : writer.known.get(path),
  )
  const isAs = (wanted: State[]) => wanted.every((state, at) => state === seen[at])
  const versions = await findMissingVersions(service, token, writer.versions)
  return isAs(before) || isAs(after) ? versions : [writer.name, ...versions]
}

/** Which of these versions the list has on none of its pages, of which the first has the newest. */
async function findMissingVersions(service: Askable, token: string, versions: string[]): Promise<string[]> {
  let missing = versions
  for (let page = 1; missing.length > 0; page += 1) {
    const { status, bytes, body } = await service.ask({
      method: 'GET',
      path: `/api/versions?page_size=200&page=${page}`,
      headers: { authorization: `Bearer ${token}` },
    })
    if (status !== 200) return [`answered ${status}: ${bytes}`]
    missing = missing.filter((version) => !bytes.includes(`"${version}"`))
    if (page >= (body.pagination?.total_pages ?? 0)) break
  }
  return missing
}

/** Makes what is stored now the state that the writer knows. */
export async function settle(service: Askable, writer: Writer): Promise<void> {
  const seen = await look(service, writer)
  for (const [at, path] of pathsOf(writer.name).entries()) writer.known.set(path, seen[at])
  writer.hoped.clear()
  writer.versions = []
  writer.deployed = undefined
}

async function look(service: Askable, writer: Writer): Promise<State[]> {
  const seen: State[] = []
  for (const path of pathsOf(writer.name)) {
    const { status, bytes } = await service.ask({
      method: 'GET',
      path: `/static/${path}`,
      headers: {},
    })
    const isThere = status === 200 || status === 404
    seen.push(status === 404 ? undefined : isThere ? bytes.toString() : `answered ${status}`)
  }
  return seen
}

/** Ends a service; returns what it has logged as warnings and errors. */
async function endLog({ child, output }: Program): Promise<string> {
  const closed = once(child, 'close')
  if (child.kill('SIGTERM')) await closed
  const lines = output().split('\n')
  return lines.filter((line) => !line.startsWith('{"level":"info"')).join('\n')
}

const isHangUp = (error: unknown) =>
  error instanceof Error &&
  'code' in error &&
  ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(String(error.code))
