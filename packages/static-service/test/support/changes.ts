import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Program } from './program.ts'
import { digestOf } from './stored-contents.ts'
import { makeTar } from './tar.ts'
import type { Writer } from './writers.ts'

// The changes that writers make while a service is killed or its power is cut: what is accepted, and what is refused and
// must leave everything as it was.

interface Client {
  program: Program
  token: string
  writer: Writer
}

type Change = (client: Client) => Promise<void>

/** One of the changes, at random. */
export const pickChange = (): Change => {
  let chance = Math.random()
  for (const [share, change] of changes) {
    chance -= share
    if (chance < 0) return change
  }
  return upload
}

const pathsOfEach = 4

/** The paths that are a writer's own. */
export const pathsOf = (name: string) => Array.from({ length: pathsOfEach }, (_, at) => `${name}/${at}/file.txt`)

async function upload({ program, token, writer }: Client) {
  const [path] = pickPaths(writer)
  const content = makeContent()
  writer.hoped.set(path, content)
  const { status } = await send({ program, token, writer }, path, content)
  expect(status).toBe(writer.known.get(path) === undefined ? 201 : 200)
}

async function uploadBatch({ program, token, writer }: Client) {
  const [one, other] = pickPaths(writer)
  const contents = [makeContent(), makeContent()] as const
  writer.hoped.set(one, contents[0]).set(other, contents[1])
  const { status } = await program.send(token, 'upload/batch', [
    { name: 'files', content: contents[0], filename: one },
    { name: 'files', content: contents[1], filename: other },
  ])
  expect(status).toBe(201)
}

/** The bytes that are stored already, at the same path or at another one. */
async function uploadAgain({ program, token, writer }: Client) {
  const [one, other] = pickPaths(writer)
  const content = writer.known.get(one)
  if (content === undefined) return upload({ program, token, writer })
  const path = Math.random() < 0.5 ? one : other
  writer.hoped.set(path, content)
  const { status } = await send({ program, token, writer }, path, content)
  expect([200, 201]).toContain(status)
}

/** The stored bytes again, in a request that is refused after they have arrived. */
async function uploadRefused({ program, token, writer }: Client) {
  const [one, other] = pickPaths(writer)
  const content = writer.known.get(one)
  if (content === undefined) return upload({ program, token, writer })
  const refused = await send({ program, token, writer }, one, content, { 'if-none-match': '*' })
  const below = await send({ program, token, writer }, `${one}/below`, content)
  const batch = await program.send(token, 'upload/batch', [
    { name: 'files', content, filename: other },
    { name: 'files', content, filename: `${one}/below` },
  ])
  expect([refused.status, below.status, batch.status]).toEqual([412, 409, 409])
}

async function remove({ program, token, writer }: Client) {
  const [path] = pickPaths(writer)
  writer.hoped.set(path, undefined)
  const { status } = await program.ask({
    method: 'DELETE',
    path: `/api/files/${path}`,
    headers: { authorization: `Bearer ${token}` },
  })
  expect(status).toBe(writer.known.get(path) === undefined ? 404 : 204)
}

async function moveOver({ program, token, writer }: Client) {
  const [from, to] = pickPaths(writer)
  const content = writer.known.get(from)
  if (content === undefined) return upload({ program, token, writer })
  writer.hoped.set(from, undefined).set(to, content)
  const { status } = await post({ program, token, writer }, 'move', { from, to, overwrite: true })
  expect(status).toBe(200)
}

async function removeBoth({ program, token, writer }: Client) {
  const paths = pickPaths(writer)
  const areThere = paths.every((path) => writer.known.get(path) !== undefined)
  if (!areThere) return upload({ program, token, writer })
  for (const path of paths) writer.hoped.set(path, undefined)
  const { status } = await post({ program, token, writer }, 'delete', { paths })
  expect(status).toBe(200)
}

async function recordVersion({ program, token, writer }: Client) {
  const version = `${writer.name}-${randomBytes(6).toString('hex')}`
  const { status } = await program.ask({
    method: 'POST',
    path: '/api/versions/',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ version, changelog: 'x' }),
  })
  expect(status).toBe(201)
  writer.versions.push(version)
  if (isAnyThere(writer.known)) writer.moments.set(version, new Map(writer.known))
}

/** All of the writer's files become others, at once: as a tar, or as a manifest of contents that are sent first. */
async function deploy(client: Client) {
  const { program, token, writer } = client
  const files = pathsOf(writer.name)
    .filter(() => Math.random() < 0.7)
    .map((path) => ({ path, content: makeContent() }))
  const before = new Map(writer.known)
  for (const path of pathsOf(writer.name)) writer.hoped.set(path, undefined)
  for (const { path, content } of files) writer.hoped.set(path, content)
  const after = new Map([...writer.known, ...writer.hoped])
  const isManifest = Math.random() < 0.5
  if (isManifest) for (const { content } of files) await putContent(client, content)
  const body = isManifest ? manifestOf(files, writer) : await tarOf(files, writer)
  const { status, bytes } = await program.ask(treeRequest(token, writer, body))
  expect(status).toBe(200)
  const { change } = TreeAnswer.parse(JSON.parse(bytes.toString()))
  if (change) writer.deployed = { change: change.id, before, after }
  if (change && isAnyThere(after)) writer.moments.set(String(change.id), after)
}

/** Takes the last deploy back, where nothing has changed since. */
async function revertDeploy(client: Client) {
  const { program, token, writer } = client
  const { deployed } = writer
  const isCurrent = pathsOf(writer.name).every((path) => deployed?.after.get(path) === writer.known.get(path))
  if (!deployed || !isCurrent) return deploy(client)
  for (const path of pathsOf(writer.name)) writer.hoped.set(path, deployed.before.get(path))
  writer.deployed = undefined
  const { status } = await program.ask({
    method: 'POST',
    path: `/api/changes/${deployed.change}/revert`,
    headers: { authorization: `Bearer ${token}` },
  })
  expectKept(status, writer)
}

/** Makes the writer's files what they were after a deploy, or in a version. */
async function restore(client: Client) {
  const { program, token, writer } = client
  const moments = [...writer.moments]
  const [at, then] = moments[Math.floor(Math.random() * moments.length)] ?? []
  if (at === undefined || !then) return deploy(client)
  for (const path of pathsOf(writer.name)) writer.hoped.set(path, then.get(path))
  const body = JSON.stringify({ from: `${writer.name}/`, at })
  const { status } = await program.ask(treeRequest(token, writer, body))
  if (status === 410) writer.moments.delete(at)
  expectKept(status, writer)
}

// On a small disk the past may have made room; then nothing is changed.
function expectKept(status: number, writer: Writer) {
  expect([200, 410]).toContain(status)
  if (status === 410) writer.hoped.clear()
}

const TreeAnswer = z.object({ change: z.object({ id: z.number() }).nullable() })

const isAnyThere = (files: Writer['known']) => [...files.values()].some((content) => content !== undefined)

const treeRequest = (token: string, { name }: Writer, body: Buffer | string) => ({
  method: 'PUT',
  path: `/api/trees/${name}/`,
  headers: { authorization: `Bearer ${token}` },
  body,
})

async function putContent({ program, token }: Client, content: string) {
  const { status } = await program.ask({
    method: 'PUT',
    path: `/api/contents/${digestOf(content)}`,
    headers: { authorization: `Bearer ${token}` },
    body: content,
  })
  expect([201, 204]).toContain(status)
}

interface NamedFile {
  path: string
  content: string
}

const nameIn = ({ name }: Writer, path: string) => path.slice(name.length + 1)

const manifestOf = (files: NamedFile[], writer: Writer) =>
  JSON.stringify({
    files: Object.fromEntries(files.map(({ path, content }) => [nameIn(writer, path), { sha256: digestOf(content) }])),
  })

const tarOf = (files: NamedFile[], writer: Writer) =>
  makeTar(files.map(({ path, content }) => [nameIn(writer, path), content]))

const changes: [number, Change][] = [
  [0.1, deploy],
  [0.1, revertDeploy],
  [0.1, restore],
  [0.1, recordVersion],
  [0.1, remove],
  [0.05, removeBoth],
  [0.1, moveOver],
  [0.1, uploadBatch],
  [0.05, uploadAgain],
  [0.1, uploadRefused],
  [0.1, upload],
]

const post = ({ program, token }: Client, to: 'move' | 'delete', body: unknown) =>
  program.ask({
    method: 'POST',
    path: `/api/files/${to}`,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const send = ({ program, token }: Client, path: string, content: string, headers: Record<string, string> = {}) =>
  program.send(
    token,
    'upload',
    [
      { name: 'file', content, filename: 'x' },
      { name: 'path', content: path },
    ],
    headers,
  )

function pickPaths({ name }: Writer): [string, string] {
  const paths = pathsOf(name)
  const [first = ''] = paths.splice(Math.floor(Math.random() * paths.length), 1)
  return [first, paths[Math.floor(Math.random() * paths.length)] ?? '']
}

// Some contents are equal, so that they share their bytes; some are large, so that they are interrupted.
function makeContent(): string {
  const chance = Math.random()
  if (chance < 0.3) return `shared ${Math.floor(chance * 10)}`
  return randomBytes(chance < 0.8 ? 500 : 200_000).toString('hex')
}
