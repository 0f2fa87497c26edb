import { sql } from '@domains-and-files/persistence'
import { afterAll, expect, test, vi } from 'vitest'
import { verifyPassword } from '../src/login/password.ts'
import { SqlUsers } from '../src/users/sql-users.ts'
import { runCommand, spawnCommand } from './support/commands.ts'
import { makeDatabase, tokensTable } from './support/database.ts'

const shared = await makeDatabase()
afterAll(() => shared[Symbol.asyncDispose]())

const env = { DATABASE_URL: shared.url }

const tokensOf = (owner: string) =>
  shared.database.all<{ id: string }>(sql`select id from ${tokensTable} where owner = ${owner}`)

test('users and API tokens are managed in DATABASE_URL', async () => {
  const service = ['--service', 'domain']

  const added = await runCommand('users', ['add', 'petra', '--role', 'editor', ...service], {
    stdin: 'password-of-petra',
    env,
  })
  // A process that ends has closed its connections.
  const listed = await spawnCommand('users', ['list', ...service], { env })
  const token = await runCommand('tokens', ['add', 'domain', 'ci', '--owner', 'petra'], { env })
  const [stored] = await tokensOf('petra')
  const revoked = await spawnCommand('tokens', ['remove', 'domain', stored?.id ?? ''], { env })

  expect(added).toEqual({ status: 0, stdout: 'Added petra as editor\n', stderr: '' })
  const petra = await new SqlUsers(shared.database).find('petra')
  expect(await verifyPassword(petra?.password ?? '', 'password-of-petra')).toBe(true)
  expect(listed.stdout).toBe('username=petra  role=editor\n')
  expect(token.stdout).toMatch(/^ds_\w{38}\n$/)
  expect(revoked).toEqual({ status: 0, stdout: `Revoked ${stored?.id}\n`, stderr: '' })
  expect(await tokensOf('petra')).toEqual([])
})

test('with DATABASE_URL the service must be named, since each has its own users', async () => {
  const refused = await runCommand('users', ['list'], { env })

  expect(refused).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('Name the service, domain or static'),
  })
})

test.each([
  ['users', ['add', 'paul', '--role', 'editor', '--service', 'domain', '--folders', 'docs/'], '--folders'],
  ['users', ['add', 'paul', '--role', 'editor', '--service', 'static', '--domains', 'example.com'], '--domains'],
] as const)('%s refuses a limit that means nothing in the service', async (command, args, option) => {
  const refused = await runCommand(command, [...args], { stdin: 'password-of-paul', env })

  expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining(`${option} means nothing in the `) })
  expect(await new SqlUsers(shared.database).find('paul')).toBeUndefined()
})

test('times are by the clock of the database, as those of replicas, however wrong that of this machine is', async () => {
  using _wrong = vi.spyOn(Date, 'now').mockReturnValue(Date.UTC(2100, 0))
  const issuer = ['--issuer', 'https://ci.example', '--audience', 'https://dns.example', '--claim', 'sub=x']
  const service = ['--service', 'domain']

  await runCommand('users', ['add', 'quinn', '--role', 'editor', ...service], { stdin: 'password-of-quinn', env })
  await runCommand('tokens', ['add', 'domain', 'ci', '--owner', 'quinn'], { env })
  await runCommand('trusts', ['add', 'ci', ...issuer, '--role', 'editor', ...service], { env })
  const tokens = await runCommand('tokens', ['list', 'domain', '--owner', 'quinn'], { env })
  const trusts = await runCommand('trusts', ['list', ...service], { env })
  const user = await new SqlUsers(shared.database).find('quinn')

  const created = /created_at=(?!2100)/
  expect([tokens.stdout, trusts.stdout]).toEqual([expect.stringMatching(created), expect.stringMatching(created)])
  expect(user?.created_at).toMatch(/^(?!2100)/)
})

test.each([
  ['users', ['list', '--service', 'domain']],
  ['tokens', ['list', 'domain']],
] as const)('%s says in one sentence why the database cannot be used', async (command, args) => {
  const none = { DATABASE_URL: 'postgres://127.0.0.1:1/none', DATABASE_DIRECT_URL: shared.url }

  expect(await runCommand(command, [...args], { env: none })).toEqual({
    status: 1,
    stdout: '',
    stderr: 'Cannot use the database in DATABASE_URL: connect ECONNREFUSED 127.0.0.1:1.\n',
  })
})
