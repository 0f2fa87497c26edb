import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAuthFile } from '../../src/auth-database.ts'
import { listTrusts } from '../../src/trusts/trusts.ts'
import { runCommand, spawnCommand } from '../support/commands.ts'
import { makeFolder } from '../support/start.ts'

const site = ['--issuer', 'https://id.example.com', '--audience', 'https://files.example.com']
const claims = ['--claim', 'repository=acme/site', '--claim', 'ref=refs/heads/a=b']

async function trustsIn(dataDir: string) {
  const database = openAuthFile(dataDir)
  try {
    return await listTrusts(database)
  } finally {
    await database.close()
  }
}

test('a trust is added for the service of its limits, listed and removed', async () => {
  await using folder = await makeFolder()
  for (const service of ['domain-service', 'static-service']) await mkdir(join(folder.path, service))
  const env = { DATA_DIR: folder.path }
  const words = ['add', 'site', ...site, ...claims, '--role', 'editor', '--folders', 'site/']

  const added = await spawnCommand('trusts', words, { env })

  expect(added).toEqual({
    status: 0,
    stdout: 'Added the trust site to static-service\n',
    stderr: '',
  })
  expect(await trustsIn(join(folder.path, 'static-service'))).toMatchObject([
    {
      name: 'site',
      issuer: 'https://id.example.com',
      role: 'editor',
      folders: ['site/'],
      audience: 'https://files.example.com',
      claims: { repository: 'acme/site', ref: 'refs/heads/a=b' },
    },
  ])
  expect((await runCommand('trusts', ['list'], { env })).stdout).toMatch(
    /^service=static-service {2}id=[\w-]{36} {2}name=site {2}issuer=https.*"repository":"acme\/site".* {2}role=editor {2}folders=site\/ {2}.*\n$/,
  )
  expect((await runCommand('trusts', ['remove', 'site'], { env })).status).toBe(0)
  expect((await runCommand('trusts', ['list'], { env })).stdout).toBe('None\n')
  expect((await runCommand('trusts', ['remove', 'site'], { env })).status).toBe(1)
})

test('without limits a trust is for both services, or for the one of DATA_DIR', async () => {
  await using folder = await makeFolder()
  const one = join(folder.path, 'one')
  await mkdir(one)
  const add = (env: Record<string, string>) =>
    runCommand('trusts', ['add', 'site', ...site, ...claims, '--role', 'viewer'], { env })
  for (const service of ['domain-service', 'static-service']) await mkdir(join(folder.path, service))

  expect((await add({ DATA_DIR: folder.path })).stdout).toMatch('domain-service and static-service')
  expect((await add({ DATA_DIR: one })).status).toBe(0)
  expect(await trustsIn(one)).toHaveLength(1)
})

test('a trust that one of both services has already is added to neither', async () => {
  await using folder = await makeFolder()
  for (const service of ['domain-service', 'static-service']) await mkdir(join(folder.path, service))
  const add = (...limits: string[]) =>
    runCommand('trusts', ['add', 'site', ...site, ...claims, '--role', 'viewer', ...limits], {
      env: { DATA_DIR: folder.path },
    })
  expect((await add('--folders', 'site/')).status).toBe(0)

  const refused = await add()

  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('named site') })
  expect(await trustsIn(join(folder.path, 'domain-service'))).toEqual([])
})

test('a list creates no data directory: of none it says so, of one service it shows that', async () => {
  await using folder = await makeFolder()
  const missing = { DATA_DIR: join(folder.path, 'mistyped') }
  const list = (env: Record<string, string>, cwd?: string) =>
    spawnCommand('trusts', ['list'], { env, ...(cwd && { cwd }) })
  const data = join(folder.path, 'data', 'domain-service')
  await mkdir(data, { recursive: true })

  expect(await list(missing)).toMatchObject({
    status: 1,
    stderr: `There is no directory ${missing.DATA_DIR}: set DATA_DIR\n`,
  })
  expect(await list({}, folder.path)).toMatchObject({ status: 0, stdout: 'None\n' })
  expect(await readdir(join(folder.path, 'data'))).toEqual(['domain-service'])
  expect(await readdir(folder.path)).toEqual(['data'])
  expect(await list({ DATA_DIR: join(folder.path, 'data') })).toMatchObject({ status: 0, stdout: 'None\n' })
  expect(await readdir(join(folder.path, 'data'))).toEqual(['domain-service'])
})

test.each([
  [
    'a limit of the other service',
    ['add', 'site', ...site, ...claims, '--role', 'viewer', '--service', 'static', '--record', 'a:A'],
  ],
  ['no claim of a workload', ['add', 'site', ...site, '--role', 'viewer', '--claim', 'ref=x']],
  ['no role', ['add', 'site', ...site, ...claims]],
  ['an unknown service', ['list', '--service', 'console']],
  ['no command', []],
])('a usage error: %s', async (_name, words) => {
  await using folder = await makeFolder()

  expect((await runCommand('trusts', words, { env: { DATA_DIR: folder.path } })).status).toBe(2)
})
