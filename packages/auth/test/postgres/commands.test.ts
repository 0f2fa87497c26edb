import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { verifyPassword } from '../../src/login/password.ts'
import { PostgresTokens } from '../../src/postgres/postgres-tokens.ts'
import { PostgresUsers } from '../../src/postgres/postgres-users.ts'
import { makeDatabase } from '../support/database.ts'

const shared = await makeDatabase()
afterAll(() => shared[Symbol.asyncDispose]())

interface Call {
  stdin?: string
  env?: Record<string, string>
}

async function run(
  command: 'users/users' | 'api-tokens/tokens',
  args: string[],
  { stdin = '', env = {} }: Call = {},
) {
  const file = fileURLToPath(new URL(`../../src/${command}-command.ts`, import.meta.url))
  const child = spawn(process.execPath, [file, ...args], {
    env: { ...process.env, DATABASE_URL: shared.url, ...env },
  })
  child.stdin.on('error', () => {}) // A command that reads no password may end before it gets one.
  child.stdin.end(stdin)
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { status, stdout, stderr }
}

test('users and API tokens are managed in DATABASE_URL', async () => {
  const service = ['--service', 'domain']

  const added = await run('users/users', ['add', 'petra', '--role', 'editor', ...service], {
    stdin: 'password-of-petra',
  })
  const listed = await run('users/users', ['list', ...service])
  const token = await run('api-tokens/tokens', ['add', 'domain', 'ci', '--owner', 'petra'])
  const [stored] = await new PostgresTokens(shared.database, () => undefined).list('petra')
  const revoked = await run('api-tokens/tokens', ['remove', 'domain', stored?.id ?? ''])

  expect(added).toEqual({ status: 0, stdout: 'Added petra as editor\n', stderr: '' })
  const petra = await new PostgresUsers(shared.database).find('petra')
  expect(await verifyPassword(petra?.password ?? '', 'password-of-petra')).toBe(true)
  expect(listed.stdout).toBe('petra  editor  all domains\n')
  expect(token.stdout).toMatch(/^ds_\w{38}\n$/)
  expect(revoked).toEqual({ status: 0, stdout: `Revoked ${stored?.id}\n`, stderr: '' })
  expect(await new PostgresTokens(shared.database, () => undefined).list('petra')).toEqual([])
})

test('with DATABASE_URL the service must be named, since each has its own users', async () => {
  const refused = await run('users/users', ['list'])

  expect(refused).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('--service domain or --service static'),
  })
})

test.each([
  ['users/users', ['list', '--service', 'domain']],
  ['api-tokens/tokens', ['list', 'domain']],
] as const)('%s says in one sentence why the database cannot be used', async (command, args) => {
  const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none', DATABASE_DIRECT_URL: shared.url }

  expect(await run(command, [...args], { env })).toEqual({
    status: 1,
    stdout: '',
    stderr: 'Cannot use the database in DATABASE_URL: connect ECONNREFUSED 127.0.0.1:1.\n',
  })
})
