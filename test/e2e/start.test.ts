import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startSharedStores } from '../../packages/static-service/test/support/shared-stores.ts'
import { describeStart } from '../../scripts/start/banner.ts'
import { readSettings } from '../../scripts/start/settings.ts'
import { type Everything, patient, readUntil, root, startEverything } from '../support/everything.ts'
import { reservePorts } from '../support/ports.ts'

// At the rates that a newcomer meets.
let shared: Everything
beforeAll(async () => {
  shared = await startEverything([], {})
})
afterAll(() => shared[Symbol.asyncDispose]())

test('npm start runs everything, and the commands that it prints work as pasted', async () => {
  const { text, dataDir } = shared
  const commands = text.slice(text.indexOf('# log in'), text.indexOf('Ctrl-C stops everything.'))

  const cwd = mkdtempSync(join(tmpdir(), 'pasted-'))
  onTestFinished(() => rmSync(cwd, { recursive: true }))
  const { stdout } = await promisify(execFile)('bash', ['-c', commands], { cwd })

  const objects = stdout.split('\n').filter((line) => line.startsWith('{'))
  const bodies = objects.map((line) => JSON.parse(line))
  const [list, before, added, zone, replaced, restored] = bodies
  const [uploaded, batch, files, found, tree, version, current] = bodies.slice(6)
  expect(list.domains).toHaveLength(3)
  expect(before.hosts.length).toBeGreaterThan(3)
  expect(added).toMatchObject({ name: 'hello', type: 'A' })
  expect(zone.hosts).toHaveLength(before.hosts.length + 1)
  expect(replaced.hosts).toHaveLength(1)
  expect(restored.hosts).toEqual(zone.hosts)
  expect(uploaded).toMatchObject({ path: 'notes/hello.txt', size: 13 })
  expect(batch.files).toHaveLength(2)
  expect(files.pagination).toMatchObject({ total_items: 3 })
  expect(found.files).toEqual([uploaded])
  expect(tree.tree).toMatchObject({ file_count: 3 })
  expect(current).toEqual(version)
  expect(stdout).toMatch(/^Hello, files\nHello\n/m)
  expect(stdout.trimEnd()).toMatch(/\n204$/)
  expect(stdout).not.toContain('"request_id"')
  expect(readdirSync(cwd)).toEqual([])
  expect(statSync(join(dataDir, 'admin-password')).mode & 0o777).toBe(0o600)
})

test('npm start prints a password only while it is true, none that it was given, and tells the console of other services', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'users-'))
  onTestFinished(() => rmSync(elsewhere, { recursive: true }))
  const users = { USERS_FILE: join(elsewhere, 'team.json') }
  await using everything = await startEverything([], {
    ...users,
    ADMIN_USERNAME: 'root',
    ADMIN_PASSWORD: 'given to npm start',
    DOMAIN_SERVICE_URL: 'https://domains.example.com',
    STATIC_SERVICE_URL: 'https://files.example.com',
    NODE_OPTIONS: patient.NODE_OPTIONS,
  })
  const { text, child, dataDir } = everything
  expect(existsSync(users.USERS_FILE)).toBe(true)
  expect(text).toContain('Log in as root with ADMIN_PASSWORD\n')
  expect(text).not.toContain('given to npm start')
  expect(await (await fetch(`${everything.console}/config.json`)).json()).toMatchObject({
    domain_service_url: 'https://domains.example.com',
    static_service_url: 'https://files.example.com',
  })

  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  const again = spawn(process.execPath, ['scripts/start/main.ts'], {
    cwd: root,
    env: {
      ...process.env,
      ...users,
      DATA_DIR: dataDir,
      PORT_BASE: String((await reservePorts(4)) + 1),
    },
  })
  onTestFinished(async () => {
    again.kill()
    await once(again, 'close')
  })

  expect(await readUntil(again, 'Ctrl-C stops everything.')).toContain('Log in as one of the users')
})

describe('a start that cannot succeed says so in one sentence, without the banner', () => {
  test('a second start names the port and how to choose another', async () => {
    const port = new URL(shared.domains).port

    const second = start({ DATA_DIR: shared.dataDir, PORT_BASE: port })

    expect(second.status).toBe(1)
    expect(second.stdout).toBe('')
    expect(second.stderr).toMatch(/^Cannot start: Port \d+ \([a-z-]+\) is in use: .* PORT_BASE=4001 npm start\.\n$/)
  })

  test.each<[string, Record<string, string>, RegExp]>([
    ['a port that is no number', { PORT_BASE: 'abc' }, /PORT_BASE=abc is not a port/],
    ['a port that browsers refuse', { PORT_BASE: '6000' }, /Browsers refuse port \d+ \([a-z-]+\): .* PORT_BASE=4001/],
    ['a data directory in procfs', { DATA_DIR: '/proc/x' }, /DATA_DIR=\/proc\/x cannot be written/],
    ['a data directory that is a file', { DATA_DIR: 'FILE' }, /DATA_DIR=\S+ cannot be written/],
    [
      'production on the sandbox',
      { NODE_ENV: 'production' },
      /NODE_ENV=production does not start the registrar sandbox: set REGISTRAR_URL/,
    ],
  ])('%s', (_name, env, sentence) => {
    const directory = mkdtempSync(join(tmpdir(), 'start-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const dataDir = env.DATA_DIR === 'FILE' ? file : (env.DATA_DIR ?? join(directory, 'data'))

    const { status, stdout, stderr } = start({ ...env, DATA_DIR: dataDir })

    expect(status).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^Cannot start: [^\n]+\n$/)
    expect(stderr).toMatch(sentence)
    expect(existsSync(join(dataDir, 'admin-password'))).toBe(false)
  })
})

test.each(['REGISTRAR_URL', 'REGISTRAR_URL_FILE'])('in production with %s there is no sandbox', (name) => {
  const settings = readSettings(root, { NODE_ENV: 'production', [name]: 'any' })

  expect(settings).toMatchObject({ isProduction: true, usesSandbox: false })
})

test('a start in production makes up no admin', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'start-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const dataDir = join(directory, 'data')
  const file = join(directory, 'url')
  writeFileSync(file, 'http://127.0.0.1:9/xml.response')
  const portBase = (await reservePorts(4)) + 1

  const { status, stdout, stderr } = start({
    DATA_DIR: dataDir,
    PORT_BASE: String(portBase),
    NODE_ENV: 'production',
    JWT_SECRET: 's'.repeat(32),
    REGISTRAR_URL_FILE: file,
    REGISTRAR_API_USER: 'any',
    REGISTRAR_API_KEY: 'any',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
  })

  expect([status, stdout]).toEqual([1, ''])
  expect(stderr.match(/There are no users in .*users\.json: set ADMIN_USERNAME/g)).toHaveLength(2)
  expect(readdirSync(dataDir)).not.toContain('admin-password')
})

test('users that a restore has put beside the data of one service are said to be unused', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'start-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const file = join(dataDir, 'users.json')
  const started = (usersFile: string) =>
    describeStart(
      [{ name: 'static-service', port: 3002, env: { DATA_DIR: dataDir, USERS_FILE: usersFile } }],
      undefined,
    )
  const before = started('/data/users.json')
  writeFileSync(file, '{"users":[]}')

  expect(started('/data/users.json')).toContain(
    `The users in ${file} are not used: copy them to /data/users.json, or delete that file.`,
  )
  expect([before, started(file)].filter((text) => text.includes('not used'))).toEqual([])
})

test('one start names the faulty settings of all programs', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'start-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const portBase = (await reservePorts(4)) + 1

  const { status, stdout, stderr } = start({
    DATA_DIR: dataDir,
    PORT_BASE: String(portBase),
    REGISTRAR_TIMEOUT_MS: 'soon',
    MAX_UPLOAD_BYTES: 'many',
    TRUST_PROXY: 'maybe',
  })

  expect([status, stdout]).toEqual([1, ''])
  expect(stderr.match(/^ +- REGISTRAR_TIMEOUT_MS: /gm)).toHaveLength(1)
  expect(stderr.match(/^ +- MAX_UPLOAD_BYTES: /gm)).toHaveLength(2)
  expect(stderr.match(/^ +- TRUST_PROXY: /gm)).toHaveLength(3)
  expect(stderr).toMatch(/\nCannot start: domain-service exited\. static-service exited\. console exited\.\n$/)
})

const start = (env: Record<string, string>) =>
  spawnSync(process.execPath, ['scripts/start/main.ts'], {
    cwd: root,
    encoding: 'utf8',
    timeout: 600_000, // Of one that succeeds.
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
  })

test('a backup of everything is restored with users, secrets and the state of the sandbox', async () => {
  const { dataDir } = shared
  const backup = join(dataDir, 'backup')
  const restored = join(dataDir, 'restored')

  const made = run('backup', { DATA_DIR: dataDir }, backup)
  const put = run('restore', { DATA_DIR: restored }, backup)

  expect([made.status, put.status]).toEqual([0, 0])
  for (const file of [
    'users.json',
    'admin-password',
    'registrar.json',
    'domain-service/domain-service.sqlite',
    'domain-service/auth.sqlite',
    'domain-service/jwt.secret',
    'static-service/static-service.sqlite',
    'static-service/jwt.secret',
  ]) {
    expect(existsSync(join(restored, file)), file).toBe(true)
  }
})

test('a backup of one service takes the DATA_DIR of npm start, and has its users', () => {
  const { dataDir } = shared
  const backup = join(dataDir, 'backup-static')

  const made = run('backup', { DATA_DIR: dataDir }, backup, 'static')

  expect(made.status, made.stderr).toBe(0)
  const [snapshot = ''] = readdirSync(join(backup, 'snapshots'))
  expect(readdirSync(join(backup, 'snapshots', snapshot))).toContain('users.json')
})

test('a backup of everything in PostgreSQL has the users from there, and no local users file', async () => {
  await using stores = await startSharedStores()
  const dataDir = mkdtempSync(join(tmpdir(), 'backup-all-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  writeFileSync(join(dataDir, 'users.json'), '{"users":[]}')
  writeFileSync(join(dataDir, 'registrar.json'), '{}')
  const backup = join(dataDir, 'backup')

  const made = run('backup', { ...stores.env, DATA_DIR: dataDir }, backup)

  expect(made.status, made.stderr).toBe(0)
  expect(readdirSync(backup).sort()).toEqual(['domain', 'registrar.json', 'static'])
  for (const service of ['domain', 'static']) {
    const [snapshot = ''] = readdirSync(join(backup, service, 'snapshots'))
    expect(readdirSync(join(backup, service, 'snapshots', snapshot))).toContain('users.json')
  }
})

const run = (command: string, env: Record<string, string>, folder: string, target = 'all') =>
  spawnSync('scripts/with-node', ['scripts/backup.ts', command, target, folder], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...env },
  })

// The last one, since it ends what the others share.
test.each([
  ['npm start', () => shared],
  ['npm run dev', () => startEverything(['--watch'])],
])('the programs of %s exit when it is killed', async (_name, started) => {
  await using everything = await started()
  const { domains, files, sandbox, child } = everything

  child.kill('SIGKILL')
  await once(child, 'close') // They all have its standard error.

  const isUp = (url: string) =>
    fetch(`${url}/health`, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    )
  expect(await Promise.all([domains, files, sandbox].map(isUp))).toEqual([false, false, false])
})
