import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runOnServer, testDatabase } from '../../../../test/support/postgres/test-database.ts'
import { runCommand } from '../../../../test/support/run-command.ts'
import { manageData } from '../../src/maintenance/data-command.ts'
import { basic, createToken, send } from '../support/protocol-client.ts'
import { type Service, start } from '../support/start.ts'

const zone = '/api/domains/example.com/dns/hosts'
const history = '/api/domains/example.com/dns/history'

async function runCli(env: Record<string, string>, ...args: string[]) {
  const { errors, ...ended } = await runCommand(manageData, args, env)
  // A slow machine shows progress.
  return { ...ended, errors: errors.replaceAll(/^database: \d+ %\n/gm, '') }
}

const add = (service: Service, name: string) =>
  service.call('POST', `${zone}/A`, { body: { name, address: '192.0.2.9' } })

async function stateOf(service: Service) {
  const entries = await service.call('GET', `${history}?page_size=100`)
  const first = await service.call('GET', `${history}/1`)
  return { history: entries.body.history, first: first.body }
}

test('history, users, API tokens and counted calls move from a directory to PostgreSQL and back', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'domain-move-'))
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }))
  await using database = await testDatabase()
  await using folder = await start({ dataDir: join(outside, 'data') })
  await add(folder, 'first')
  await add(folder, 'second')
  const before = await stateOf(folder)
  const headers = basic(await createToken(folder))
  const me = async (service: Service) => (await send(service, 'GET', '/api/auth/me', { headers })).status
  const registrarEnv = { REGISTRAR_URL: folder.sandbox.url, REGISTRAR_API_USER: 'tester' }
  const databaseEnv = {
    ...registrarEnv,
    REGISTRAR_API_KEY: 'unused',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
    DATABASE_URL: database.url,
    DATA_DIR: join(outside, 'temporary'),
  }

  const made = await runCli({ DATA_DIR: folder.dataDir }, 'backup', join(outside, 'monday'))
  const moved = await runCli(databaseEnv, 'restore', join(outside, 'monday'))
  const calls = await runOnServer(database.url, 'select distinct account from domain_service.calls')
  await using replica = await start({
    databaseUrl: database.url,
    dataDir: join(outside, 'replica'),
    sandbox: folder.sandbox,
  })
  const there = await stateOf(replica)
  const third = await add(replica, 'third')
  const madeThere = await runCli(databaseEnv, 'backup', join(outside, 'tuesday'), '--verify')
  const refused = await runCli(databaseEnv, 'restore', join(outside, 'tuesday'))
  const restoring = 'domain_service.restore'
  await runOnServer(database.url, `insert into ${restoring} (backup) values ('a backup')`)
  const half = await runCli(databaseEnv, 'backup', join(outside, 'half'))
  await runOnServer(database.url, `delete from ${restoring}`)
  const back = await runCli({ DATA_DIR: join(outside, 'copy') }, 'restore', join(outside, 'tuesday'))
  await using copy = await start({ dataDir: join(outside, 'copy'), sandbox: folder.sandbox })

  expect([half.status, half.errors]).toEqual([1, expect.stringContaining('was interrupted')])
  const runs = [made, moved, madeThere, back]
  // A slow run shows its progress every five seconds.
  const ends = runs.map(({ status, errors }) => [status, errors.replace(/^\d+ rows\n/gm, '')])
  expect(ends).toEqual(runs.map(() => [0, '']))
  expect(there.history).toEqual(before.history)
  expect(there.first).toEqual(before.first)
  expect(calls).toEqual([{ account: `${folder.sandbox.url} tester` }])
  expect(third.status).toBe(201)
  expect(refused).toMatchObject({ status: 1, errors: expect.stringContaining('is not empty') })
  expect([await me(folder), await me(replica), await me(copy)]).toEqual([200, 200, 200])
  expect((await stateOf(copy)).history).toEqual((await stateOf(replica)).history)
  expect(readFileSync(join(outside, 'copy/users.json'), 'utf8')).toContain('"editor"')
})
