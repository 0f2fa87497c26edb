import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { readNewPassword } from '../../src/command-line.ts'
import { verifyPassword } from '../../src/login/password.ts'
import { runCommand, spawnCommand } from '../support/commands.ts'
import { makeFolder, makeUser, readUsers, writeUsers } from '../support/start.ts'

async function begin(users?: unknown[]) {
  const folder = await makeFolder()
  const file = join(folder.path, 'users.json')
  if (users) await writeUsers(file, users)
  const run = (args: string[], stdin = '') => runCommand('users', args, { stdin, env: { USERS_FILE: file } })
  /** In a process of its own, in the folder. */
  const spawn = (args: string[], stdin: string, env: Record<string, string>) =>
    spawnCommand('users', args, { stdin, env, cwd: folder.path })
  const find = (username: string) => readUsers(file).find((user) => user.username === username)
  return { folder, file, run, spawn, find, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] }
}

const adam = await makeUser('adam', { role: 'admin' })
const vera = await makeUser('vera', { domains: ['example.com'] })

test('a user is added, with the password from standard input', async () => {
  await using place = await begin()
  const { spawn, file, find } = place

  const args = ['add', 'vera', '--role', 'viewer', '--domains', 'Example.com, *.co.uk']
  args.push('--folders', 'docs, site/a/')
  const answer = await spawn(args, 'long enough\r\nmore\n', { USERS_FILE: file })

  expect(answer).toEqual({ status: 0, stdout: 'Added vera as viewer\n', stderr: '' })
  expect(find('vera')).toMatchObject({
    role: 'viewer',
    domains: ['example.com', '*.co.uk'],
    folders: ['docs/', 'site/a/'],
  })
  expect(await verifyPassword(find('vera')?.password ?? '', 'long enough')).toBe(true)
})

test('a password is changed', async () => {
  await using place = await begin([adam, vera])
  const { run, find } = place

  const answer = await run(['passwd', 'vera'], 'other words')

  expect(answer.status).toBe(0)
  expect(await verifyPassword(find('vera')?.password ?? '', 'other words')).toBe(true)
  expect(find('vera')?.domains).toEqual(['example.com'])
})

test('a role is changed, and the domains are kept, changed or given up', async () => {
  await using place = await begin([adam, vera])
  const { run, find } = place
  const domains: unknown[] = []

  for (const option of [[], ['--domains', '*.co.uk'], ['--domains', '*']]) {
    await run(['role', 'vera', 'editor', ...option])
    domains.push(find('vera')?.domains)
  }

  expect(find('vera')?.role).toBe('editor')
  expect(domains).toEqual([['example.com'], ['*.co.uk'], undefined])
})

test('folders are kept, changed or given up with the role', async () => {
  await using place = await begin([adam, { ...vera, folders: ['docs/'] }])
  const { run, find } = place
  const folders: unknown[] = []

  for (const option of [[], ['--folders', 'site/'], ['--folders', '/']]) {
    await run(['role', 'vera', 'editor', ...option])
    folders.push(find('vera')?.folders)
  }

  expect(folders).toEqual([['docs/'], ['site/'], undefined])
  expect(find('vera')?.domains).toEqual(['example.com'])
})

test('a user whose writes are proposals may be given direct writes, and keeps neither by chance', async () => {
  await using place = await begin([adam])
  const { run, find } = place
  const writes: unknown[] = []

  await run(['add', 'bob', '--role', 'editor', '--writes', 'propose'], 'long enough\n')
  for (const option of [[], ['--writes', 'direct'], ['--writes', 'propose'], ['--writes', 'x']]) {
    writes.push((await run(['role', 'bob', 'editor', ...option])).status, find('bob')?.writes)
  }

  expect(writes).toEqual([0, 'propose', 0, undefined, 0, 'propose', 2, 'propose'])
})

test('the users are listed without their passwords', async () => {
  await using place = await begin([adam, vera])
  const { run } = place

  const { status, stdout } = await run(['list'])

  expect(status).toBe(0)
  expect(stdout).toBe('username=adam  role=admin\nusername=vera  role=viewer  domains=example.com\n')
})

test('a user is removed', async () => {
  await using place = await begin([adam, vera])
  const { run, file } = place

  const answer = await run(['remove', 'vera'])

  expect(answer.status).toBe(0)
  expect(readUsers(file)).toEqual([adam])
})

test.each([
  [['remove', 'adam'], 'last admin'],
  [['role', 'adam', 'editor'], 'last admin'],
  [['remove', 'nobody'], 'No user nobody'],
  [['passwd', 'nobody'], 'No user nobody'],
  [['role', 'nobody', 'admin'], 'No user nobody'],
  [['add', 'vera', '--role', 'viewer'], 'The user vera exists already'],
])('%j is not possible and changes nothing', async (args, reason) => {
  await using place = await begin([adam, vera])
  const { run, file } = place

  const answer = await run(args, 'long enough\n')

  expect(answer).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(reason) })
  expect(readUsers(file)).toEqual([adam, vera])
})

test.each([
  ['is too short', '1234567\n', 'at least 10 characters'],
  ['is empty', '\n', 'at least 10 characters'],
  ['is not given', '', 'No password was given'],
])('a password that %s is refused', async (_name, stdin, reason) => {
  await using place = await begin([adam])
  const { run, file } = place

  const answer = await run(['add', 'vera', '--role', 'viewer'], stdin)

  expect(answer).toMatchObject({ status: 1, stderr: expect.stringContaining(reason) })
  expect(readUsers(file)).toEqual([adam])
})

test.each([
  [[]],
  [['constructor']],
  [['add']],
  [['add', 'bob']],
  [['add', 'bob', '--role', 'root']],
  [['add', 'b b', '--role', 'viewer']],
  [['add', 'bob', '--role', 'viewer', '--domains', 'a/b']],
  [['add', 'bob', 'hunter2hunter2', '--role', 'viewer']],
  [['add', 'bob', '--password', 'hunter2hunter2', '--role', 'viewer']],
  [['add', 'bob', '--password=hunter2hunter2', '--role', 'viewer']],
  [['passwd', 'adam', 'hunter2hunter2']],
  [['add', 'bob', '--role', 'viewer', '--domains', '*']],
  [['add', 'bob', '--role', 'viewer', '--folders', '../']],
  [['list', '--role', 'viewer']],
  [['passwd', 'adam', '--rebind']],
])('%j is not understood, and no word of a password is repeated', async (args) => {
  await using place = await begin([adam])
  const { run, file } = place

  const answer = await run(args, 'long enough\n')

  expect(answer).toMatchObject({ status: 2, stdout: '' })
  expect(answer.stderr).toMatch(/See users --help\n$/)
  expect(answer.stderr).not.toContain('hunter2')
  expect(readUsers(file)).toEqual([adam])
})

test.each([[['--help']], [['-h']], [['add', '--help']]])('%j explains everything', async (args) => {
  await using place = await begin()
  const { run } = place

  const answer = await run(args)

  expect(answer).toMatchObject({ status: 0, stderr: '' })
  expect(answer.stdout).toContain('users passwd <name>')
})

test('a broken users file is named and left as it is', async () => {
  await using place = await begin([{ ...adam, role: 'root' }])
  const { run } = place

  const answer = await run(['list'])

  expect(answer).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Cannot use the users file'),
  })
})

test('the file is USERS_FILE, else in DATA_DIR, else in data', async () => {
  await using place = await begin()
  const { spawn, folder } = place
  const add = (env: Record<string, string>) => spawn(['add', 'adam', '--role', 'admin'], 'long enough', env)

  await add({ USERS_FILE: join(folder.path, 'a.json'), DATA_DIR: join(folder.path, 'b') })
  await add({ DATA_DIR: join(folder.path, 'b') })
  await add({ USERS_FILE: '', DATA_DIR: '' })

  const files = ['a.json', 'b/users.json', 'data/users.json'].map((name) => join(folder.path, name))
  expect(files.map((file) => readUsers(file).length)).toEqual([1, 1, 1])
})

test('changes made at once are all kept', async () => {
  await using place = await begin([adam])
  const { spawn, file } = place
  const names = ['b', 'c', 'd', 'e', 'f', 'g']
  const env = { USERS_FILE: file }

  const answers = await Promise.all(names.map((name) => spawn(['add', name, '--role', 'viewer'], 'long enough', env)))

  expect(answers.map(({ status }) => status)).toEqual(names.map(() => 0))
  const made = readUsers(file).map(({ username }) => username)
  expect(made.sort()).toEqual(['adam', ...names])
})

function makeTerminal(typed: string) {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => input })
  const prompt = new PassThrough()
  input.write(typed)
  return { input, prompt }
}

test('at a terminal a password is asked for twice and never shown', async () => {
  const { input, prompt } = makeTerminal('long enough\rlong enough\r')

  const password = await readNewPassword({ stdin: input, stderr: prompt })

  expect(password).toBe('long enough')
  expect(await text(prompt.end())).toBe('Password: \nAgain: \n')
})

test.each([
  ['another the second time', 'long enough\rlong enoufh\r', 'differ'],
  ['Ctrl-C', 'long en\x03', 'No password was given'],
  ['Ctrl-D', '\x04', 'No password was given'],
])('at a terminal %s gives no password', async (_name, typed, reason) => {
  const { input, prompt } = makeTerminal(typed)

  await expect(readNewPassword({ stdin: input, stderr: prompt })).rejects.toThrow(reason)
})

test('users of single sign-on are removed until they are allowed, also before their first login', async () => {
  const bob = {
    username: 'oidc:bob',
    role: 'editor',
    id: 'first',
    created_at: '2026-01-01T00:00:00Z',
    oidc: { issuer: 'https://id.example.com', subject: 'b1' },
  }
  await using place = await begin([adam, bob])
  const { run, find } = place

  expect((await run(['remove', 'oidc:bob'])).status).toBe(0)
  expect((await run(['remove', 'oidc:eve'])).status).toBe(0)
  expect(find('oidc:bob')?.oidc).toEqual({ ...bob.oidc, is_barred: true })
  expect(find('oidc:eve')?.oidc).toEqual({ is_barred: true })
  expect((await run(['list'])).stdout).toMatch(/^username=oidc:bob {2}role=editor {2}status=removed$/m)
  expect((await run(['allow', 'oidc:bob'])).status).toBe(0)
  expect(find('oidc:bob')?.oidc).toEqual(bob.oidc)
  expect(find('oidc:bob')?.id).not.toBe('first')
  expect((await run(['allow', 'oidc:bob', '--rebind'])).status).toBe(0)
  expect(find('oidc:bob')?.oidc).toEqual({})
  expect((await run(['allow', 'adam'])).status).toBe(2)
})

test.each([['add', '--role', 'admin'], ['passwd'], ['role', 'admin']])(
  'a user of single sign-on has no local password or role: %s',
  async (command, ...rest) => {
    await using place = await begin([adam])

    const { status, stderr } = await place.run([command, 'oidc:bob', ...rest], 'long enough\n')

    expect([status, stderr]).toEqual([2, expect.stringContaining('must not begin with oidc:')])
  },
)
