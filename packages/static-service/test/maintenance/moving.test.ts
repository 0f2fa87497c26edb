import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runCommand } from '../../../../test/support/run-command.ts'
import { manageData } from '../../src/maintenance/data-command.ts'
import { check } from '../../src/maintenance/files-command.ts'
import { startSharedStores } from '../support/shared-stores.ts'
import { type Service, start } from '../support/start.ts'
import { digestOf, flip } from '../support/stored-contents.ts'

const cli = join(import.meta.dirname, '../../dist/data-command.js')

async function makeFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'static-moving-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const begin = (env: Record<string, string>, ...args: string[]) =>
  spawn(process.execPath, [cli, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })

const runCli = (env: Record<string, string>, ...args: string[]) => runCommand(manageData, args, env)

const contents: [string, Buffer][] = [
  ['a.txt', Buffer.from('small')],
  ['docs/b.txt', Buffer.from('small')],
  ['docs/Ärger/größe.css', Buffer.from('p { color: black }\n'.repeat(4000))],
  ['docs/large.bin', randomBytes(300_000)],
  ['in/parts.bin', randomBytes(17_000_000)],
  ['empty', Buffer.alloc(0)],
]

/** For tests in which an object need not be sent in parts. */
const withoutParts = contents.map(([path, content]): [string, Buffer] => [path, content.subarray(0, 100_000)])

const startKeeping = ({ env, dataDir }: { env?: Record<string, string>; dataDir?: string }) =>
  start({ env: { ...env, KEEP_HISTORY_DAYS: '30' }, ...(dataDir && { dataDir }) })

async function fill(service: Service, files = contents) {
  for (const [path, content] of files) expect((await service.put(path, content)).status).toBe(201)
  await service.call('DELETE', '/api/files/a.txt')
  await service.put('docs/b.txt', `past ${'large '.repeat(7000)}`)
  await service.put('docs/b.txt', 'small')
  await service.put('forgotten.txt', 'forgotten')
  await service.call('POST', '/api/files/delete', {
    json: { paths: ['forgotten.txt'], forget: true },
  })
  await service.call('PUT', `/api/contents/${digestOf('kept')}`, { body: 'kept' })
  await service.call('POST', '/api/versions/', { json: { version: '1.0.0', changelog: 'First' } })
  await service.call('PUT', '/api/access/in', { json: { public: false } })
  await service.call('POST', '/api/links', { json: { path: 'docs/', downloads: 3 } })
}

const questions = [
  '/api/files/',
  '/api/files/?search=rg&sort=size',
  '/api/files/?search=ä',
  '/api/files/tree',
  '/api/files/categories',
  '/api/files/docs/large.bin',
  '/api/versions',
  '/api/access',
  '/api/links',
  '/api/versions/stats',
  '/api/changes',
  '/api/changes/8',
  '/api/history?path=docs/b.txt',
  '/api/history?path=forgotten.txt',
  '/api/history/content?path=a.txt&change=6',
  '/api/history/content?path=docs/b.txt&change=8',
  '/api/trees/docs/?at=8',
  '/api/trees/?at=1.0.0',
  '/api/events',
]

/** What the service answers, but for the address of the service. */
async function answers(service: Service) {
  const found: string[] = []
  for (const path of questions) {
    const { status, bytes } = await service.call('GET', encodeURI(path))
    // An archive of all files takes long to compare as text.
    const told = bytes.length > 1_000_000 ? digestOf(bytes) : bytes.toString().replaceAll(`:${service.port}`, ':port')
    found.push(`${path} ${status} ${told}`)
  }
  for (const [path, content] of contents.slice(1)) {
    const { bytes } = await service.call('GET', encodeURI(`/static/${path}`))
    expect(bytes.equals(content)).toBe(true)
  }
  return found
}

test('files move from a folder to PostgreSQL and S3 and back, and every answer stays the same', async () => {
  const folder = await makeFolder()
  const [first, second] = [join(folder, 'first'), join(folder, 'second')]
  await using stores = await startSharedStores({ isEmpty: true })
  const shared = { ...stores.env, DATA_DIR: join(folder, 'temporary') }
  const embedded = { DATA_DIR: join(folder, 'data') }
  let before: string[]
  {
    await using service = await startKeeping({ dataDir: embedded.DATA_DIR })
    await fill(service)
    before = await answers(service)
  }

  const backup = await runCli(embedded, 'backup', first)
  const restored = await runCli(shared, 'restore', first)
  expect([backup.status, restored.status, restored.errors]).toEqual([0, 0, expect.any(String)])
  {
    await using service = await startKeeping({ env: stores.env })
    expect(await check(stores.env)).toMatchObject({ damages: [], orphans: [] })
    expect(await answers(service)).toEqual(before)
    expect((await service.put('docs/more.txt', 'more')).status).toBe(201)
    expect((await service.call('DELETE', '/api/files/docs/more.txt')).status).toBe(204)
  }
  const later = ['/api/versions/stats', '/api/changes', '/api/events']
  const unchanged = (found: string[]) => found.filter((answer) => !later.some((path) => answer.startsWith(`${path} `)))
  const again = await runCli(shared, 'backup', second, '--verify')
  expect([again.status, again.errors]).toEqual([0, expect.not.stringContaining('Warning')])
  expect((await runCli({}, 'check', second, '--verify')).status).toBe(0)
  const back = { DATA_DIR: join(folder, 'back') }
  expect((await runCli(back, 'restore', second, '--verify')).status).toBe(0)
  {
    await using service = await startKeeping({ dataDir: back.DATA_DIR })
    expect(unchanged(await answers(service))).toEqual(unchanged(before))
    // The deletion of a.txt, whose change is 7.
    expect((await service.call('POST', '/api/changes/7/revert')).status).toBe(200)
    const restored = await service.call('GET', '/static/a.txt')
    expect(restored.bytes.toString()).toBe('small')
    const at = { json: { from: 'docs/', at: '8' } }
    expect((await service.call('PUT', '/api/trees/docs/', at)).body).toMatchObject({ replaced: 1 })
  }
  expect((await check({ DATA_DIR: back.DATA_DIR })).damages).toEqual([])
  stores.s3.calls.length = 0
  expect((await runCli(shared, 'backup', second)).status).toBe(0)
  expect(stores.s3.calls).toEqual([]) // The folder has all blobs.
})

test('an interrupted restore is resumed, and no service starts before it is complete', async () => {
  const folder = await makeFolder()
  await using stores = await startSharedStores({ isEmpty: true })
  const shared = { ...stores.env, DATA_DIR: join(folder, 'temporary') }
  const made = join(folder, 'backup')
  let before: string[]
  {
    await using service = await startKeeping({ dataDir: join(folder, 'data') })
    await fill(service)
    before = await answers(service)
  }
  await runCli({ DATA_DIR: join(folder, 'data') }, 'backup', made)
  stores.s3.fault = ({ operation }) => (operation === 'part' ? { kind: 'silent' } : undefined)
  const killed = begin({ ...shared, S3_TIMEOUT_MS: '600000' }, 'restore', made)
  const ended = once(killed, 'exit')
  const objects = () => stores.query('select from static_service.contents where object_key is not null').catch(() => []) // The table is made by the restore.
  await expect.poll(async () => (await objects()).length).toBe(2)
  killed.kill('SIGKILL')
  await ended
  stores.s3.fault = () => undefined

  await expect(start({ env: stores.env })).rejects.toThrow(/restore/)
  const half = await runCli(shared, 'backup', join(folder, 'half'))
  expect([half.status, half.errors]).toEqual([1, expect.stringContaining('was interrupted')])
  const calls = stores.s3.calls.length
  const resumed = await runCli(shared, 'restore', made)

  expect([resumed.status, resumed.errors]).toEqual([0, expect.any(String)])
  const sent = stores.s3.calls.slice(calls).map(({ operation }) => operation)
  // What the past alone has comes after all files.
  expect(sent.filter((operation) => operation === 'put')).toHaveLength(1)
  await using service = await startKeeping({ env: stores.env })
  expect(await answers(service)).toEqual(before)
})

test('a backup names the objects that are missing or altered, and a restore overwrites nothing', async () => {
  const folder = await makeFolder()
  await using stores = await startSharedStores()
  const shared = { ...stores.env, DATA_DIR: join(folder, 'temporary') }
  await using service = await start({ env: stores.env })
  await fill(service)
  for (const key of stores.s3.store.everStored) {
    const object = stores.s3.store.objects.get(key)
    if (object?.size === 300_000) await stores.s3.store.alter(key, flip)
    if (object?.size === 17_000_000) await stores.s3.store.remove(key)
  }

  const refused = await runCli(shared, 'backup', join(folder, 'refused'))
  const skipped = await runCli(shared, 'backup', join(folder, 'skipped'), '--skip-damaged')
  const occupied = await runCli(shared, 'restore', join(folder, 'skipped'))

  expect(refused.status).toBe(1)
  expect(refused.errors).toMatch(/docs\/large\.bin: its content/)
  expect(refused.errors).toMatch(/in\/parts\.bin: its content/)
  expect(skipped.status).toBe(0)
  expect(occupied.status).toBe(1)
  expect(await readdir(join(folder, 'refused/snapshots'))).toEqual([])
})

test('a backup that skips damaged contents goes on past an object that the store does not give', async () => {
  const folder = await makeFolder()
  await using stores = await startSharedStores()
  const shared = { ...stores.env, DATA_DIR: join(folder, 'temporary') }
  {
    await using service = await start({ env: stores.env })
    await fill(service, withoutParts)
  }
  const [archived] = await stores.query<{ object_key: string }>(
    "select object_key from static_service.contents natural join static_service.files where path = 'in/parts.bin'",
  )
  stores.s3.fault = ({ key }) =>
    key === archived?.object_key ? { kind: 'status', status: 403, code: 'AccessDenied' } : undefined

  const refused = await runCli(shared, 'backup', join(folder, 'refused'))
  const skipped = await runCli(shared, 'backup', join(folder, 'skipped'), '--skip-damaged')

  const fault = /in\/parts\.bin: its content .* cannot be read \(AccessDenied/
  expect([refused.status, skipped.status]).toEqual([1, 0])
  expect(refused.errors).toMatch(fault)
  expect(skipped.out).toMatch(fault)
})

test('while S3 is away a backup fails in one sentence, and is no backup', async () => {
  const folder = await makeFolder()
  await using stores = await startSharedStores()
  const shared = { ...stores.env, DATA_DIR: join(folder, 'temporary') }
  {
    await using service = await start({ env: stores.env })
    await fill(service, withoutParts)
  }
  await stores.query('create table held as select * from static_service.backups')
  await stores.query('create rule held as on delete to static_service.backups do also insert into held values (old.*)')
  await stores.s3.pause()

  const refused = await runCli(shared, 'backup', join(folder, 'refused'))

  expect(refused.status).toBe(1)
  expect(refused.errors).toContain('Cannot use the bucket in S3_BUCKET: Error, connect ECONNREFUSED')
  expect(refused.errors).not.toContain('    at ')
  expect(await readdir(join(folder, 'refused/snapshots'))).toEqual([])
  expect(await readdir(shared.DATA_DIR)).toEqual([])
  expect(await stores.query('select * from held'), 'the sweeper deletes no object meanwhile').toHaveLength(1)
  expect(await stores.query('select * from static_service.backups')).toEqual([])
})

test('a restore that cannot use a store says why in one sentence, and is resumed with correct settings', async () => {
  const folder = await makeFolder()
  await using stores = await startSharedStores({ isEmpty: true })
  const shared = { ...stores.env, DATA_DIR: join(folder, 'temporary') }
  const made = join(folder, 'backup')
  {
    await using service = await start({ dataDir: join(folder, 'data') })
    await fill(service, withoutParts)
  }
  await runCli({ DATA_DIR: join(folder, 'data') }, 'backup', made)

  const noBucket = await runCli({ ...shared, S3_BUCKET: 'missing' }, 'restore', made)
  const noPooler = {
    ...shared,
    DATABASE_URL: 'postgres://127.0.0.1:1/x',
    DATABASE_DIRECT_URL: stores.env.DATABASE_URL ?? '',
  }
  const noDatabase = await runCli(noPooler, 'restore', made)
  const resumed = await runCli(shared, 'restore', made)

  expect(noBucket.status).toBe(1)
  expect(noBucket.errors).toMatch(/^Cannot use the bucket in S3_BUCKET: NoSuchBucket, .*\.$/m)
  expect(noDatabase.status).toBe(1)
  expect(noDatabase.errors).toBe('Cannot use the database in DATABASE_URL: connect ECONNREFUSED 127.0.0.1:1.\n')
  expect(resumed.status).toBe(0)
})
