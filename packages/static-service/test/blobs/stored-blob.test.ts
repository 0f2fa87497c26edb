import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { blobPathOf } from '../../src/blobs/stored-blob.ts'
import { type Program, run } from '../support/program.ts'
import { digestOf } from '../support/stored-contents.ts'

const content = randomBytes(20_000_000)

/** A service with a file of 20 MB, and a way to start it again. */
async function startWithLargeFile() {
  const folder = mkdtempSync(join(tmpdir(), 'static-integrity-'))
  const dataDir = join(folder, 'data')
  const programs: Program[] = []
  const begin = async () => {
    const program = await run(dataDir)
    programs.push(program)
    return program
  }
  onTestFinished(async () => {
    for (const program of programs) await program.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const program = await begin()
  const token = await program.logIn()
  const { status } = await program.send(token, 'upload', [{ name: 'file', content, filename: 'large.bin' }])
  expect(status).toBe(201)
  const file = join(dataDir, 'blobs', ...blobPathOf(digestOf(content)))
  return { folder, file, program, begin }
}

/** Bytes that a program has read, from files as well as from sockets. */
const bytesRead = ({ child }: Program) =>
  Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${child.pid}/io`, 'utf8'))?.[1])

async function measureReads(program: Program, work: () => Promise<unknown>): Promise<number> {
  const before = bytesRead(program)
  await work()
  return bytesRead(program) - before
}

const get = (program: Program, headers: Record<string, string> = {}) =>
  program.ask({ method: 'GET', path: '/static/large.bin', headers })

const firstByte = async (program: Program) => {
  const { status, bytes } = await get(program, { range: 'bytes=0-0' })
  expect([status, bytes.length]).toEqual([206, 1])
}

test('a stored file is not hashed again: not after a hard link, a change of mode, or a restart', async () => {
  const { folder, file, program, begin } = await startWithLargeFile()
  linkSync(file, join(folder, 'link'))
  chmodSync(file, 0o444)
  const before = await measureReads(program, () => firstByte(program))
  program.child.kill('SIGTERM')
  await new Promise((resolve) => program.child.once('exit', resolve))

  const again = await begin()
  const after = await measureReads(again, () => firstByte(again))

  expect(Math.max(before, after)).toBeLessThan(1_000_000)
})

test('a file of another inode is hashed once, also across restarts, and never for a HEAD', async () => {
  const { file, program, begin } = await startWithLargeFile()
  rmSync(file)
  writeFileSync(file, content)

  const head = await measureReads(program, () =>
    program.ask({ method: 'HEAD', path: '/static/large.bin', headers: {} }),
  )
  const first = await measureReads(program, () => firstByte(program))
  const second = await measureReads(program, () => firstByte(program))
  program.child.kill('SIGTERM')
  await new Promise((resolve) => program.child.once('exit', resolve))
  const again = await begin()
  const third = await measureReads(again, () => firstByte(again))

  expect(head).toBeLessThan(1_000_000)
  expect(first).toBeGreaterThan(content.length)
  expect(Math.max(second, third)).toBeLessThan(1_000_000)
})

test('a file that was changed in place is hashed again, and not served', async () => {
  const { file, program } = await startWithLargeFile()
  await firstByte(program)
  const changed = Buffer.from(content)
  changed[10] = ~(changed[10] ?? 0)
  writeFileSync(file, changed)
  utimesSync(file, new Date(), new Date())

  const { status } = await get(program, { range: 'bytes=0-0' })

  expect(status).toBe(500)
})
