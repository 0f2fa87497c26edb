import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { blobPathOf } from '../../src/blobs/blob-path.ts'
import { databaseFile, openReader } from '../../src/catalog/database.ts'
import { unflushedIn } from '../../src/catalog/unflushed-contents.ts'
import { check } from '../../src/maintenance/check.ts'
import { type Program, run } from '../support/program.ts'
import { start } from '../support/start.ts'

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'static-unflushed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A program, and the names of the commands that it finds before the system's, with what they do. */
async function begin(dataDir: string, commands: Record<string, string> = {}): Promise<Program> {
  const folder = makeFolder()
  for (const [name, script] of Object.entries(commands)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
  const program = await run(dataDir, { PATH: `${folder}:${process.env.PATH}` })
  onTestFinished(() => program.kill())
  return program
}

const put = (program: Program, token: string, path: string, content = path) =>
  program.send(token, 'upload', [
    { name: 'file', content, filename: 'x' },
    { name: 'path', content: path },
  ])

async function read(program: Program, path: string) {
  const { status, bytes } = await program.ask({
    method: 'GET',
    path: `/static/${path}`,
    headers: {},
  })
  return `${status} ${bytes}`
}

function query<Row>(dataDir: string, sql: string): Row[] {
  const db = openReader(databaseFile(dataDir))
  try {
    return db.prepare<[], Row>(sql).all()
  } finally {
    db.close()
  }
}

function unflushed(dataDir: string): string[] {
  const db = openReader(databaseFile(dataDir))
  try {
    return [...unflushedIn(db)]
  } finally {
    db.close()
  }
}

const never = { sync: 'exec sleep 60' }

const inspect = (dataDir: string) => check({ dataDir, repair: false, onProgress: () => undefined })

test('small contents of which the disk has kept nothing, a part or other bytes are brought back by a start', async () => {
  const dataDir = makeFolder()
  const program = await begin(dataDir, never)
  const token = await program.logIn()
  for (const path of ['gone', 'empty', 'other', 'whole']) await put(program, token, path)
  await program.kill()
  const files = query<{ path: string; digest: string }>(dataDir, 'select path, digest from files')
  for (const { path, digest } of files) {
    const file = join(dataDir, 'blobs', ...blobPathOf(digest))
    if (path === 'gone') rmSync(file)
    if (path === 'empty') writeFileSync(file, '')
    if (path === 'other') writeFileSync(file, 'OTHER')
  }
  const before = await inspect(dataDir)

  const again = await begin(dataDir, never)

  expect(before.damages.map(({ path, fault }) => `${path}: ${fault}`).sort()).toEqual([
    'empty: its content has 0 bytes instead of 5; the next start brings it back',
    'gone: its content is missing; the next start brings it back',
    'other: its content has been altered; the next start brings it back',
  ])
  for (const { path } of files) expect(await read(again, path)).toBe(`200 ${path}`)
  expect(await inspect(dataDir)).toMatchObject({ files: 4, damages: [], orphans: [] })
})

test('once the disk was flushed after them, small contents lie in their files only', async () => {
  const dataDir = makeFolder()
  const program = await begin(dataDir)
  const token = await program.logIn()

  await put(program, token, 'a')

  await expect.poll(() => unflushed(dataDir), { timeout: 20_000 }).toEqual([])
  expect(await read(program, 'a')).toBe('200 a')
})

test('a service that is told to stop leaves nothing unflushed', async () => {
  const dataDir = makeFolder()
  await using service = await start({ dataDir })
  await service.put('a')

  await service.close()

  expect(unflushed(dataDir)).toEqual([])
})

test('what is deleted or replaced before it was flushed is forgotten', async () => {
  const dataDir = makeFolder()
  const program = await begin(dataDir, never)
  const token = await program.logIn()
  await put(program, token, 'a', 'first')
  await put(program, token, 'a', 'second')
  await put(program, token, 'b', 'third')

  const { status } = await program.ask({
    method: 'DELETE',
    path: '/api/files/b',
    headers: { authorization: `Bearer ${token}` },
  })

  const files = query<{ digest: string }>(dataDir, 'select digest from files')
  expect([status, unflushed(dataDir)]).toEqual([204, files.map(({ digest }) => digest)])
})

test('where the disk cannot be flushed as a whole, that is told once, and each file is flushed alone', async () => {
  const dataDir = makeFolder()
  const program = await begin(dataDir, { sync: 'exit 1' })
  const token = await program.logIn()
  await put(program, token, 'first')
  await expect.poll(() => program.output(), { timeout: 20_000 }).toContain('disk not flushed')
  const before = unflushed(dataDir)

  const { status } = await put(program, token, 'second')

  expect([status, await read(program, 'second')]).toEqual([201, '200 second'])
  expect([before.length, unflushed(dataDir)]).toEqual([1, before])
  expect(program.output().match(/disk not flushed/g)).toHaveLength(1)
})

test('a content of a batch that shares its bytes with a file that goes is kept until it is flushed', async () => {
  const dataDir = makeFolder()
  const program = await begin(dataDir, never)
  const token = await program.logIn()
  const batch = (one: string, other: string) =>
    program.send(token, 'upload/batch', [
      { name: 'files', content: one, filename: 'one' },
      { name: 'files', content: other, filename: 'other' },
    ])
  await batch('1', '2')

  await batch('2', '1')

  const files = query<{ digest: string }>(dataDir, 'select digest from files order by digest')
  expect(unflushed(dataDir).sort()).toEqual(files.map(({ digest }) => digest))
  expect([await read(program, 'one'), await read(program, 'other')]).toEqual(['200 2', '200 1'])
})

test('a file that cannot be written fails its own upload only', async () => {
  await using service = await start()
  await service.put('a')
  const digest = 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb' // Of the letter a.
  const place = join(service.dataDir, 'blobs', ...blobPathOf(digest))
  expect(statSync(place).size).toBe(1)
  rmSync(join(service.dataDir, 'blobs', '3e'), { recursive: true, force: true })
  writeFileSync(join(service.dataDir, 'blobs', '3e'), 'in the way of the letter b')

  const [failed, stored] = await Promise.all([service.put('b'), service.put('c')])

  expect([failed.status, stored.status]).toEqual([500, 201])
  expect((await service.call('GET', '/api/files/b')).status).toBe(404)
})
