import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { name, SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { runCommand } from '../../../../test/support/run-command.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { databaseName, migrations } from '../../src/ledger/schema.ts'
import { manageData } from '../../src/maintenance/data-command.ts'
import { serviceDatabase } from '../support/databases.ts'
import { begin, enqueue, requestBy } from '../support/ledger.ts'
import { createToken } from '../support/protocol-client.ts'
import { type Service, start, www } from '../support/start.ts'

const zone = '/api/domains/example.com/dns/hosts'

const runCli = (dataDir: string, ...args: string[]) => runWith({ DATA_DIR: dataDir }, args)

const runWith = (env: Record<string, string>, args: string[]) => runCommand(manageData, args, env)

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'domain-backup-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('a backup of a running service brings back its history, its users and the calls that it counted', async () => {
  const outside = makeFolder()
  const [backup, copy] = [join(outside, 'monday'), join(outside, 'copy')]
  await using service = await start()
  await service.call('POST', `${zone}/A`, { body: { name: 'new', address: '192.0.2.9' } })
  const history = '/api/domains/example.com/dns/history'
  const before = await service.call('GET', history)

  const made = await runCli(service.dataDir, 'backup', backup, '--verify')
  await service.call('POST', `${zone}/A`, { body: { name: 'later', address: '192.0.2.9' } })
  const restored = await runCli(copy, 'restore', backup)

  expect([made.status, restored.status], made.errors + restored.errors).toEqual([0, 0])
  await using second = await start({ dataDir: copy, sandbox: service.sandbox })
  expect((await second.call('GET', history)).body.history).toEqual(before.body.history)
  const users = [service.dataDir, copy].map((folder) => readFileSync(join(folder, 'users.json')))
  expect(users[1]).toEqual(users[0])
})

test('a setting that is not valid ends a command with a sentence, and settings of the account are not needed', async () => {
  const backup = (env: Record<string, string>) => runWith(env, ['backup', makeFolder()])

  const wrong = await backup({ DATABASE_URL: 'mysql://127.0.0.1/zones' })
  // Refused at once: a server that is away is waited for.
  await using database = await serviceDatabase()
  const production = await backup({ NODE_ENV: 'production', DATABASE_URL: `${database.url}_absent` })

  expect([wrong.status, production.status]).toEqual([1, 1])
  expect(wrong.errors).toMatch(/^The environment is not valid:\n {2}- DATABASE_URL: must be a URL/)
  expect(production.errors).toMatch(/^Cannot use the database in DATABASE_URL: database "\w+" does not exist/)
})

test('users outside the data directory are restored there, unless there are some', async () => {
  const outside = makeFolder()
  const [backup, users] = [join(outside, 'monday'), join(outside, 'new/users.json')]
  await using service = await start()
  const made = await runCli(service.dataDir, 'backup', backup)
  const expected = readFileSync(join(service.dataDir, 'users.json'))
  const restoreAs = (name: string) => runWith({ DATA_DIR: join(outside, name), USERS_FILE: users }, ['restore', backup])

  const first = await restoreAs('first')
  const restored = readFileSync(users)
  const mode = statSync(users).mode & 0o777
  writeFileSync(users, '{"users":[]}')
  const second = await restoreAs('second')

  expect([made.status, first.status, second.status]).toEqual([0, 0, 0])
  expect(restored).toEqual(expected)
  expect(mode).toBe(0o600)
  expect(existsSync(join(outside, 'first/users.json'))).toBe(false)
  expect(readFileSync(users, 'utf8')).toBe('{"users":[]}')
})

test('what was queued when a backup was made waits for an admin after the restore', async () => {
  const outside = makeFolder()
  const [backup, copy] = [join(outside, 'monday'), join(outside, 'copy')]
  const queue = (service: Service, name: string) =>
    service.call('POST', `${zone}/A`, {
      body: { name, address: '192.0.2.9' },
      headers: { prefer: 'respond-async' },
    })
  await using other = await start()
  const { sandbox } = other
  await using service = await start({ sandbox, env: { REGISTRAR_RATE: '1/day' } })
  await service.call('GET', zone) // The only call: nothing can be carried out.
  const path = (await queue(service, 'early')).headers.get('location') ?? ''
  const made = await runCli(service.dataDir, 'backup', backup)
  const restored = await runCli(copy, 'restore', backup)
  await using second = await start({ dataDir: copy, sandbox })
  const statusOf = async (change: string) => (await second.call('GET', change)).body.status

  const later = (await queue(second, 'later')).headers.get('location') ?? ''
  await expect.poll(() => statusOf(later)).toBe('confirmed')
  const during = (await second.call('GET', path)).body
  const token = await createToken(second, { role: 'admin', domains: ['*.example.com'] })
  const headers = { authorization: `Bearer ${token}` }
  for (const [method, at] of [
    ['POST', '/api/changes/held/release'],
    ['DELETE', '/api/changes/held'],
  ] as const)
    expect((await second.call(method, at, { headers })).body.count).toBe(0)
  const released = await second.call('POST', '/api/changes/held/release')

  expect([made.status, restored.status]).toEqual([0, 0])
  expect(during).toMatchObject({ status: 'queued', held: true })
  expect(released.body.count).toBe(1)
  await expect.poll(() => statusOf(path)).toBe('confirmed')
})

test('what was being sent when a backup was made waits for an admin, and no late write is repaired', async () => {
  const outside = makeFolder()
  const [dataDir, copy, backup] = [join(outside, 'data'), join(outside, 'copy'), join(outside, 'monday')]
  mkdirSync(dataDir)
  const open = (folder: string) => new SqliteSql({ file: join(folder, databaseName), migrations })
  const database = open(dataDir)
  const ledger = new Ledger({ sql: database })
  await begin(ledger, [await enqueue(ledger, requestBy('admin'))])
  await database.run(sql`update ${name('sends')} set unanswered = 1`)
  await database.close()

  await runCli(dataDir, 'backup', backup)
  await runCli(copy, 'restore', backup)

  const restored = open(copy)
  onTestFinished(() => restored.close())
  const change = await restored.get(sql`select status, is_held from ${name('changes')}`)
  const send = await restored.get(sql`select state, unanswered from ${name('sends')}`)
  expect([change, send]).toEqual([
    { status: 'sending', is_held: 1 },
    { state: 'open', unanswered: 0 },
  ])
})

test('a backup of another service is refused', async () => {
  const outside = makeFolder()
  await using service = await start({ domains: [{ name: 'example.com', hosts: [www] }] })
  await runCli(service.dataDir, 'backup', join(outside, 'monday'))
  const cli = join(import.meta.dirname, '../../../static-service/dist/data-command.js')

  const { status, stderr } = spawnSync(process.execPath, [cli, 'restore', join(outside, 'monday')], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      DATA_DIR: join(outside, 'copy'),
    },
    encoding: 'utf8',
  })

  expect([status, stderr]).toEqual([1, 'This is a backup of the domain-service, not of the static-service.\n'])
})

test('a folder belongs to one process', async () => {
  await using service = await start()

  const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, '../../dist/main.js')], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      DATA_DIR: service.dataDir,
      PORT: '0',
      LOG_LEVEL: 'silent',
    },
    encoding: 'utf8',
  })

  expect([status, stderr]).toEqual([1, `Another process is using ${service.dataDir}: stop it first.\n`])
})
