import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type { Program } from './program.ts'
import type { ask } from './start.ts'

/** A content as text, or nothing where no file is. */
type State = string | undefined

/** Whoever can be asked: a program, or a service in this process. */
interface Askable {
  ask: (asked: Parameters<typeof ask>[1]) => ReturnType<typeof ask>
}

/**
 * What one writer knows: nobody else touches its paths. `hoped` is what becomes of them when the change that was
 * running when the process was killed did happen.
 */
export interface Writer {
  name: string
  known: Map<string, State>
  hoped: Map<string, State>
  versions: string[]
}

export const makeWriters = (count: number): Writer[] =>
  Array.from({ length: count }, (_, at) => {
    return { name: `writer-${at}`, known: new Map(), hoped: new Map(), versions: [] }
  })

/** Changes one thing after the other until there is nobody to answer; says how many were acknowledged. */
export async function writeUntilKilled(
  program: Program,
  token: string,
  writer: Writer,
): Promise<number> {
  for (let count = 0; ; count += 1) {
    try {
      await changeOne(program, token, writer)
    } catch (error) {
      if (isHangUp(error)) return count
      throw error
    }
    for (const [path, state] of writer.hoped) writer.known.set(path, state)
    writer.hoped.clear()
  }
}

/**
 * What of a writer's is neither as it was acknowledged nor, all of it, as its last change would have left it: nothing,
 * where all is well.
 */
export async function findLosses(
  service: Askable,
  token: string,
  writer: Writer,
): Promise<string[]> {
  const seen = await look(service, writer)
  const before = pathsOf(writer.name).map((path) => writer.known.get(path))
  const after = pathsOf(writer.name).map((path) =>
    writer.hoped.has(path) ? writer.hoped.get(path) : writer.known.get(path),
  )
  const isAs = (wanted: State[]) => wanted.every((state, at) => state === seen[at])
  const { bytes } = await service.ask({
    method: 'GET',
    path: '/api/versions?page_size=200',
    headers: { authorization: `Bearer ${token}` },
  })
  // The newest 200 hold all that one round makes.
  const versions = writer.versions.filter((version) => !bytes.includes(`"${version}"`))
  return isAs(before) || isAs(after) ? versions : [writer.name, ...versions]
}

/** Takes what is there for what it wrote last. */
export async function settle(service: Askable, writer: Writer): Promise<void> {
  const seen = await look(service, writer)
  for (const [at, path] of pathsOf(writer.name).entries()) writer.known.set(path, seen[at])
  writer.hoped.clear()
  writer.versions = []
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

async function changeOne(program: Program, token: string, writer: Writer) {
  const [one = '', other = ''] = pickTwo(writer.name)
  const chance = Math.random()
  if (chance < 0.15) {
    const version = `${writer.name}-${randomBytes(6).toString('hex')}`
    const { status } = await program.ask({
      method: 'POST',
      path: '/api/versions/',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ version, changelog: 'x' }),
    })
    expect(status).toBe(201)
    writer.versions.push(version)
    return
  }
  if (chance < 0.4) {
    writer.hoped.set(one, undefined)
    const { status } = await program.ask({
      method: 'DELETE',
      path: `/api/files/${one}`,
      headers: { authorization: `Bearer ${token}` },
    })
    expect(status).toBe(writer.known.get(one) === undefined ? 404 : 204)
    return
  }
  if (chance < 0.6) {
    const contents = [makeContent(), makeContent()] as const
    writer.hoped.set(one, contents[0]).set(other, contents[1])
    const { status } = await program.send(token, 'upload/batch', [
      { name: 'files', content: contents[0], filename: one },
      { name: 'files', content: contents[1], filename: other },
    ])
    expect(status).toBe(201)
    return
  }
  const content = makeContent()
  writer.hoped.set(one, content)
  const { status } = await program.send(token, 'upload', [
    { name: 'file', content, filename: 'x' },
    { name: 'path', content: one },
  ])
  expect(status).toBe(writer.known.get(one) === undefined ? 201 : 200)
}

const pathsOfEach = 4

/** The paths that are a writer's own. */
export const pathsOf = (name: string) =>
  Array.from({ length: pathsOfEach }, (_, at) => `${name}/${at}/file.txt`)

function pickTwo(name: string): string[] {
  const paths = pathsOf(name)
  const [first] = paths.splice(Math.floor(Math.random() * paths.length), 1)
  return [first ?? '', paths[Math.floor(Math.random() * paths.length)] ?? '']
}

// Some contents are alike, so that they share their bytes; some are large, so that they are cut off.
function makeContent(): string {
  const chance = Math.random()
  if (chance < 0.3) return `shared ${Math.floor(chance * 10)}`
  return randomBytes(chance < 0.8 ? 500 : 200_000).toString('hex')
}

const isHangUp = (error: unknown) =>
  error instanceof Error &&
  'code' in error &&
  ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(String(error.code))
