import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { check } from '../../src/maintenance/files-command.ts'
import { type Program, run } from '../support/program.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { offsetOf, tus, urlOf } from '../support/tus.ts'

/** The service on a disk that fails when it is told to. */
async function startFailing(env: Record<string, string> = {}, disk?: string) {
  const folder = mkdtempSync(join(tmpdir(), 'static-failing-'))
  const plan = join(folder, 'plan')
  const dataDir = join(disk ?? folder, 'data')
  const program = await run(dataDir, {
    ...env,
    FAILURE_PLAN: plan,
    NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/fail-disk.ts')}`,
  })
  onTestFinished(async () => {
    await program.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const token = await program.logIn()
  return {
    dataDir,
    program,
    token,
    /** Lets the disk's n-th call from now on fail so. */
    failAt: (code: string, nth: number | `${number}+`, about = '') => {
      rmSync(`${plan}.done`, { force: true })
      writeFileSync(plan, `${code} ${nth} ${about}`)
    },
    hasFailed: () => existsSync(`${plan}.done`),
    /** Lets it fail no more; says what has failed. */
    heal: () => {
      rmSync(plan, { force: true })
      return existsSync(`${plan}.done`) ? readFileSync(`${plan}.done`, 'utf8').trim() : undefined
    },
  }
}

interface Client {
  program: Program
  token: string
}

const put = ({ program, token }: Client, path: string, content: string) =>
  program.send(token, 'upload', [
    { name: 'file', content, filename: 'x' },
    { name: 'path', content: path },
  ])

// One that is kept with its row until its file is flushed, and one that is not.
const putTwo = ({ program, token }: Client, content: string) =>
  program.send(token, 'upload/batch', [
    { name: 'files', content: `1 ${content}`, filename: 'one' },
    { name: 'files', content: large(`2 ${content}`), filename: 'two' },
  ])

const large = (content: string) => content.padEnd(40_000)

const remove = ({ program, token }: Client, path: string) =>
  program.ask({
    method: 'DELETE',
    path: `/api/files/${path}`,
    headers: { authorization: `Bearer ${token}` },
  })

async function read({ program }: Client, path: string): Promise<string | undefined> {
  const { status, bytes } = await program.ask({
    method: 'GET',
    path: `/static/${path}`,
    headers: {},
  })
  return status === 404 ? undefined : `${status} ${bytes}`
}

test('wherever the disk fails, a change is answered as it happened, and the service goes on', async () => {
  const failing = await startFailing()
  const failed = new Set<string>()
  await put(failing, 'one', 'before')
  await put(failing, 'two', large('before'))

  // Calls of the compressor in the background are counted too, so that one pass may miss a call of the upload.
  const calls = ['mkdir', 'open', 'rename', 'sync', 'write']
  const codes = ['EIO', 'ENOSPC', 'EMFILE', 'EROFS', 'ENOENT']
  do {
    for (const code of codes) await failEachCall(code)
  } while (!calls.every((call) => failed.has(call)))

  async function failEachCall(code: string) {
    for (let nth = 1, isOver = false; !isOver; nth += 1) {
      const before = await read(failing, 'one')
      failing.failAt(code, nth)
      const written = await putTwo(failing, `${code} ${nth}`)
      const name = failing.heal()
      const wanted = written.status === 201 ? `200 1 ${code} ${nth}` : before
      if (written.status !== 201) expect(written.status).toBe(code === 'ENOSPC' ? 507 : 503)
      expect(await read(failing, 'one')).toBe(wanted)
      expect((await read(failing, 'two'))?.trimEnd()).toBe(wanted?.replace('200 1', '200 2'))

      failing.failAt(code, nth)
      const removed = await remove(failing, 'one')
      failing.heal()
      expect([removed.status, await read(failing, 'one')]).toEqual([204, undefined])
      expect((await put(failing, 'one', '1 again')).status).toBe(201)
      expect((await put(failing, 'two', large('2 again'))).status).toBe(200)
      if (name) failed.add(name)
      isOver = name === undefined
    }
  }

  await failing.program.kill()
  const again = await run(failing.dataDir)
  again.child.kill('SIGTERM') // With its end the sweep has ended that a start begins.
  await once(again.child, 'exit')
  expect(readdirSync(join(failing.dataDir, 'tmp'))).toEqual([])
  const report = await check({ DATA_DIR: failing.dataDir })
  expect(report).toMatchObject({ files: 2, damages: [], orphans: [] })
})

test('wherever a disk begins to fail for good, changes are 503 until it works again', async () => {
  const failing = await startFailing()
  const statuses = new Set<number>()

  for (let nth = 1, isOver = false; !isOver; nth += 1) {
    failing.failAt('EIO', `${nth}+`)
    statuses.add((await putTwo(failing, `${nth}`)).status)
    isOver = failing.heal() === undefined
    expect((await put(failing, 'one', `again ${nth}`)).status).toBeLessThan(202)
  }

  expect(statuses).toEqual(new Set([503, 201]))
})

test('after a failed flush of the rows of uploads nothing of them is acknowledged until a restart, and all of before is there', async () => {
  const failing = await startFailing()
  const authorization = `Bearer ${failing.token}`
  let { program } = failing
  const protocol = tus({
    call: (method, path, { headers, body } = {}) =>
      program.ask({ method, path, body, headers: { authorization, ...headers } }),
  })
  const { create, patch, head } = protocol
  const url = urlOf(await create('resumed', 9))
  await patch(url, 0, 'abc')
  failing.failAt('EIO', 1, 'uploads.sqlite-wal')

  const refused = await patch(url, 3, 'def')
  const failed = failing.heal()
  const after = [await head(url), await patch(url, 3, 'def'), await create('other', 3)]
  const other = await put(failing, 'one', 'stored')
  const health = await program.ask({ method: 'GET', path: '/health', headers: {} })
  program.child.kill('SIGTERM')
  await once(program.child, 'exit')
  program = await run(failing.dataDir)
  onTestFinished(() => program.kill())
  const offset = offsetOf(await head(url))
  const done = await patch(url, offset, 'abcdefghi'.slice(offset))

  expect([failed, refused.status, other.status]).toEqual(['sync', 503, 201])
  expect(after.map(({ status }) => status)).toEqual([503, 503, 503])
  expect([health.status, JSON.parse(String(health.bytes)).status]).toEqual([200, 'degraded'])
  expect([offset >= 3, done.status]).toEqual([true, 204])
  expect(await read({ program, token: failing.token }, 'resumed')).toBe('200 abcdefghi')
})

test('where space is short, the log of the rows of uploads is not checkpointed once a flush of it failed', async () => {
  using disk = mountSmallDisk(24)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  const failing = await startFailing({ KEEP_HISTORY_DAYS: '0' }, disk.folder)
  const sizeOf = (log: string) => statSync(join(failing.dataDir, log)).size
  const authorization = `Bearer ${failing.token}`
  const { create } = tus({
    call: (method, path, { headers } = {}) =>
      failing.program.ask({ method, path, headers: { authorization, ...headers } }),
  })
  await put(failing, 'one', 'x'.repeat(30_000)) // Its row leaves pages that are given back.
  failing.failAt('EIO', 1, 'uploads.sqlite-wal')
  const failed = await create('resumed', 9)
  failing.heal()
  const before = sizeOf('uploads.sqlite-wal')

  disk.fill()
  const removed = await remove(failing, 'one')
  // The last log that is emptied.
  await expect.poll(() => sizeOf('static-service.sqlite-wal')).toBe(0)

  expect([failed.status, removed.status]).toEqual([503, 204])
  expect(before).toBeGreaterThan(0)
  expect(sizeOf('uploads.sqlite-wal')).toBe(before)
  await failing.program.kill()
})

test('a read that the disk fails is an error that keeps no file open, and the next one is answered', async () => {
  const failing = await startFailing({ MEMORY_CACHE_BYTES: '1048576' })
  // Too large for that cache; binary, so that the compressor does not touch it.
  const content = '\0'.repeat(600_000)
  await put(failing, 'large', content)
  // Starts the worker thread of the content database, which has files of its own open.
  await put(failing, 'small', 'content')
  const opened = () => readdirSync(`/proc/${failing.program.child.pid}/fd`).length
  await read(failing, 'large')
  const before = opened()

  const failed: (string | undefined)[] = []
  for (let nth = 1; nth <= 4; nth += 1) {
    failing.failAt('EIO', nth, '/blobs/')
    const { status } = await failing.program
      .ask({ method: 'GET', path: '/static/large', headers: {} })
      .catch(() => ({ status: 'cut off' }))
    const name = failing.heal()
    failed.push(`${name} ${status}`)
    expect(await read(failing, 'large')).toBe(`200 ${content}`)
  }

  expect(failed).toEqual(['open 503', 'stat 503', 'read 503', 'read cut off'])
  await expect.poll(opened).toBeLessThanOrEqual(before)
})

test('a compressed form that could not be written is made when the file is asked for again', async () => {
  const failing = await startFailing()
  const headers = { 'accept-encoding': 'zstd' }
  const coding = async () => {
    const { status, ...answer } = await failing.program.ask({
      method: 'GET',
      path: '/static/a.txt',
      headers,
    })
    return `${status} ${answer.headers['content-encoding']}`
  }
  failing.failAt('EIO', 2, '.zstd')

  await put(failing, 'a.txt', randomBytes(50_000).toString('hex'))
  await expect.poll(failing.hasFailed).toBe(true)
  failing.heal()

  await expect.poll(coding).toBe('200 zstd')
})

test('a start on a disk that fails at some call is refused in a sentence, or is a start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'static-start-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const plan = join(folder, 'plan')
  const env = {
    FAILURE_PLAN: plan,
    NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/fail-disk.ts')}`,
    LOG_LEVEL: 'error',
  }
  const said: string[] = []
  for (const nth of [1, 4]) {
    writeFileSync(plan, `EIO ${nth}`)
    const outcome = await run(join(folder, 'data'), env).then(
      async (program) => {
        await program.kill()
        return 'started'
      },
      (error) => String(error.message).replaceAll(folder, ''),
    )
    said.push(outcome)
  }

  for (const words of said) expect(words).toMatch(/^started$|^it ended:\nCannot start: EIO: .*\n$/)
  expect(said.filter((words) => words !== 'started').length).toBeGreaterThan(1)
})
