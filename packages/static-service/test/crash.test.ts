import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { check } from '../src/check.ts'
import { type Program, run } from './program.ts'

const rounds = Number(process.env.CRASH_ROUNDS ?? 30)
const writers = 6
const pathsOfEach = 4

/** A content as text, or nothing where no file is. */
type State = string | undefined

/**
 * What one writer knows: nobody else touches its paths. `hoped` is what becomes of them when the change that was
 * running when the process was killed did happen.
 */
interface Writer {
  name: string
  known: Map<string, State>
  hoped: Map<string, State>
  versions: string[]
}

test(`after each of ${rounds} kills nothing acknowledged is lost and nothing is there by halves`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-crash-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const everybody = Array.from({ length: writers }, (_, at): Writer => {
    return { name: `writer-${at}`, known: new Map(), hoped: new Map(), versions: [] }
  })
  let program = await run(dataDir)
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  let acknowledged = 0

  for (let round = 0; round < rounds; round += 1) {
    const killer = setTimeout(() => program.child.kill('SIGKILL'), 20 + Math.random() * 180)
    const counts = await Promise.all(
      everybody.map((writer) => writeUntilKilled(program, token, writer)),
    )
    clearTimeout(killer)
    acknowledged += counts.reduce((total, count) => total + count, 0)
    await program.kill()

    program = await run(dataDir)
    expect(readdirSync(join(dataDir, 'tmp'))).toEqual([])
    for (const writer of everybody) await compare(program, token, writer)
    const report = await check({ dataDir, repair: false, onProgress: () => undefined })
    expect(report).toMatchObject({ damages: [], orphans: [] })
  }

  expect(acknowledged).toBeGreaterThan(rounds)
}, 900_000)

/** Changes one thing after the other until there is nobody to answer; says how many were acknowledged. */
async function writeUntilKilled(program: Program, token: string, writer: Writer): Promise<number> {
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

/** All paths of a writer are as they were acknowledged, or all as its last change would have left them. */
async function compare(program: Program, token: string, writer: Writer) {
  const found = new Map<string, State>()
  for (const path of pathsOf(writer.name)) {
    const { status, bytes } = await program.ask({
      method: 'GET',
      path: `/static/${path}`,
      headers: {},
    })
    found.set(path, status === 404 ? undefined : `${status} ${bytes}`)
  }
  const seen = pathsOf(writer.name).map((path) => found.get(path))
  const stateOf = (state: State) => (state === undefined ? undefined : `200 ${state}`)
  const before = pathsOf(writer.name).map((path) => stateOf(writer.known.get(path)))
  const after = pathsOf(writer.name).map((path) =>
    stateOf(writer.hoped.has(path) ? writer.hoped.get(path) : writer.known.get(path)),
  )
  expect([before, after]).toContainEqual(seen)
  for (const [path, state] of found) writer.known.set(path, state?.slice('200 '.length))
  writer.hoped.clear()

  const { bytes } = await program.ask({
    method: 'GET',
    path: '/api/versions?page_size=200',
    headers: { authorization: `Bearer ${token}` },
  })
  // The newest 200 hold all that this round made.
  for (const version of writer.versions) expect(bytes.toString()).toContain(`"${version}"`)
  writer.versions = []
}

const pathsOf = (name: string) =>
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
