import { existsSync, mkdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ApiTokens } from '../../src/api-tokens/api-tokens.ts'
import { openAuthFile } from '../../src/auth-database.ts'
import { runCommand, spawnCommand } from '../support/commands.ts'
import { makeFolder, makeUser, writeUsers } from '../support/start.ts'

async function begin() {
  const folder = await makeFolder()
  await writeUsers(`${folder.path}/users.json`, [
    await makeUser('adam', { role: 'admin' }),
    await makeUser('vera', { domains: ['example.com'] }),
  ])
  const env = { DATA_DIR: folder.path }
  const run = (...args: string[]) => runCommand('tokens', args, { env })
  /** In a process of its own. */
  const spawn = (...args: string[]) => spawnCommand('tokens', args, { env })
  const list = async (below = '') => {
    const database = openAuthFile(`${folder.path}/${below}`)
    const report = () => undefined
    const find = async () => undefined
    const tokens = new ApiTokens({ database, find, prefix: 'ds_', now: Date.now, report })
    const listed = await tokens.list()
    await database.close()
    return listed
  }
  return { path: folder.path, run, spawn, list, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] }
}

test('a token is added, listed and removed', async () => {
  await using place = await begin()
  const { run, spawn, list } = place

  const limits = ['--record', '_acme-challenge:TXT', '--record', 'home:A,AAAA', '--networks', '::1']
  const owner = ['--owner', 'adam']
  const added = await spawn('add', 'domain', 'ci', ...owner, '--expires', 'never', ...limits)
  const [stored] = await list()
  const listed = await run('list', 'domain')
  const removed = await run('remove', 'domain', stored?.id ?? '')

  expect(added).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ds_\w{38}\n$/) })
  expect(stored).toMatchObject({
    name: 'ci',
    owner: 'adam',
    expires_at: null,
    networks: ['::1'],
    records: [
      { name: '_acme-challenge', types: ['TXT'] },
      { name: 'home', types: ['A', 'AAAA'] },
    ],
  })
  expect(listed.stdout).toMatch(
    /^id=[\w-]{36} {2}name=ci {2}records=\[{"name":"_acme-challenge",.* {2}networks=::1 {2}/,
  )
  expect(listed.stdout).not.toContain('digest')
  expect(removed.status).toBe(0)
  expect(await list()).toEqual([])
})

test('with the DATA_DIR of npm start, a token goes to the folder of its service', async () => {
  await using place = await begin()
  mkdirSync(`${place.path}/domain-service`)

  const added = await place.run('add', 'domain', 'ci', '--owner', 'adam')
  const listed = await place.run('list', 'domain')

  expect([added.status, await place.list()]).toEqual([0, []])
  expect(await place.list('domain-service/')).toMatchObject([{ name: 'ci', owner: 'adam' }])
  expect(listed.stdout).toMatch(/name=ci .*role=viewer/)
})

test.each([
  [['add', 'domain', 'ci', '--owner', 'nobody'], 2, '--owner must name a user'],
  [['add', 'domain', '--owner', 'adam'], 2, 'Usage: tokens add <service> <name>'],
  [['add', 'other', 'ci', '--owner', 'adam'], 2, 'Name the service'],
  [['add', 'static', 'ci', '--owner', 'vera', '--role', 'editor'], 1, 'at most your own role, viewer'],
  [['add', 'static', 'ci', '--owner', 'vera', '--role', 'root'], 2, 'role must be one of'],
  [['add', 'static', 'ci', '--owner', 'vera', '--expires', 'soon'], 2, 'expires_in must be'],
  [['add', 'static', 'ci', '--owner', 'adam', '--record', 'home:A'], 2, '--record'],
  [['add', 'static', 'ci', '--owner', 'adam', '--domains', 'example.com'], 2, '--domains'],
  [['add', 'static', 'ci', '--owner', 'adam', '--replace'], 2, '--replace'],
  [['add', 'domain', 'ci', '--owner', 'adam', '--folders', 'site/'], 2, '--folders'],
  [['add', 'domain', 'ci', '--owner', 'adam', '--service', 'static'], 2, 'The service is an argument here'],
  [['remove', 'static', 'x'], 1, 'No API token x'],
  [['rotate', 'static'], 2, 'Missing command'],
  [['list', 'static', '--all'], 2, 'Unknown option'],
])('%j is refused with status %i', async (args, status, reason) => {
  await using place = await begin()

  const answer = await place.run(...args)

  expect(answer).toMatchObject({ status, stdout: '', stderr: expect.stringContaining(reason) })
  expect(await place.list()).toEqual([])
})

test.each(['list', 'remove'])('%s creates no DATA_DIR', async (verb) => {
  await using folder = await makeFolder()
  const DATA_DIR = `${folder.path}/mistyped`
  const words = verb === 'remove' ? ['domain', 'x'] : ['domain']

  const answer = await runCommand('tokens', [verb, ...words], { env: { DATA_DIR } })

  const stderr = `There is no directory ${DATA_DIR}: set DATA_DIR\n`
  expect(answer).toEqual({ status: 1, stdout: '', stderr })
  expect(existsSync(DATA_DIR)).toBe(false)
})

test('--for registrar makes an editor, and prints the settings of each tool with its token', async () => {
  await using place = await begin()
  const options = ['--owner', 'adam', '--for', 'registrar', '--url', 'https://dns.example.net/']

  const added = await place.run('add', 'domain', 'terraform', ...options, '--replace')
  const limited = await place.run('add', 'domain', 'lego', ...options, '--record', 'home:A')
  const elsewhere = await place.run('add', 'static', 'terraform', ...options)
  const [token, record] = await place.list()

  const [secret = ''] = added.stdout.split('\n')
  expect(secret).toMatch(/^ds_\w{38}$/)
  expect(added.stdout.split(secret)).toHaveLength(9)
  expect(added.stdout).toContain('"BaseURL":"https://dns.example.net/integrations/registrar/xml.response"')
  for (const tool of ['DNSControl', 'Terraform', 'Caddy', 'lego', 'certbot', 'acme.sh', 'curl'])
    expect(added.stdout).toContain(tool)
  expect(token).toMatchObject({ name: 'terraform', role: 'editor', replace: true })
  expect([limited.status, elsewhere.status]).toEqual([0, 2])
  expect(record?.role).toBeUndefined()
})
