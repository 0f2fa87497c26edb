import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { BackupWatch } from '@domains-and-files/persistence'
import { expect, onTestFinished, test } from 'vitest'
import { makeFarDirectory } from '../../../../test/support/far-directory.ts'
import { runCommand } from '../../../../test/support/run-command.ts'
import { blobPathOf } from '../../src/blobs/stored-blob.ts'
import { manageData } from '../../src/maintenance/data-command.ts'
import { check } from '../../src/maintenance/files-command.ts'
import { type Program, run } from '../support/program.ts'
import { mountSmallDisk } from '../support/small-disk.ts'
import { start } from '../support/start.ts'
import { alter, digestOf, filesBelow, rowsIn } from '../support/stored-contents.ts'

const cli = join(import.meta.dirname, '../../dist/data-command.js')
const env = (dataDir: string) => ({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  DATA_DIR: dataDir,
})

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'static-backup-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const begin = (dataDir: string, ...args: string[]) =>
  spawn(process.execPath, [cli, ...args], { env: env(dataDir), stdio: ['ignore', 'pipe', 'pipe'] })

/** A backup that has copied the database, and reads the users file until `goOn`. */
async function beginHalf(dataDir: string, target: string) {
  const pipe = join(makeFolder(), 'users.json')
  execFileSync('mkfifo', [pipe])
  const child = spawn(process.execPath, [cli, 'backup', target], {
    env: { ...env(dataDir), USERS_FILE: pipe },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const written = await open(pipe, 'w') // Opened when it is read.
  return { child, goOn: () => written.close() }
}

async function finish(child: ChildProcess) {
  const told = Promise.all([child.stdout, child.stderr].map((stream) => stream && text(stream)))
  const [status] = await once(child, 'exit')
  const [out, errors] = await told
  return { status, out: out ?? '', errors: errors ?? '' }
}

const large = 'large '.repeat(10_000)

const runCli = (dataDir: string, ...args: string[]) => runCommand(manageData, args, { DATA_DIR: dataDir })

/** Changes things until it is told to stop: a path that grows by one each time, and others that come and go. */
class Writer {
  readonly path: string
  readonly #program: Program
  readonly #token: string
  acknowledged = 0
  #isStopped = true
  #working: Promise<void> | undefined

  constructor(program: Program, token: string, name: string) {
    this.#program = program
    this.#token = token
    this.path = name
  }

  begin() {
    this.#isStopped = false
    this.#working = this.#work()
  }

  async stop() {
    this.#isStopped = true
    await this.#working
  }

  async #work() {
    for (let count = this.acknowledged + 1; !this.#isStopped; count += 1) {
      await this.#put(this.path, `${count} ${randomBytes(2000).toString('hex')}`)
      this.acknowledged = count
      const passing = `passing/${this.path}/${count % 3}`
      await this.#put(passing, randomBytes(3000))
      const { status } = await this.#program.ask({
        method: 'DELETE',
        path: `/api/files/${passing}`,
        headers: { authorization: `Bearer ${this.#token}` },
      })
      expect(status).toBe(204)
    }
  }

  async #put(path: string, content: string | Buffer) {
    const { status } = await this.#program.send(this.#token, 'upload', [
      { name: 'path', content: path },
      { name: 'file', content, filename: 'x' },
    ])
    expect([200, 201]).toContain(status)
  }
}

/** Every file of a running service, read by its path. */
async function readAll({ ask }: Program, token: string): Promise<Map<string, string>> {
  const headers = { authorization: `Bearer ${token}` }
  const { body } = await ask({ method: 'GET', path: '/api/files?page_size=200', headers })
  const found = new Map<string, string>()
  for (const { path, url } of body.files ?? []) {
    const { status, bytes } = await ask({ method: 'GET', path: url, headers: {} })
    expect([path, status]).toEqual([path, 200])
    found.set(path, bytes.toString())
  }
  return found
}

test('backups under load hold all that was acknowledged before, every file whole', async () => {
  const outside = makeFolder()
  const dataDir = join(outside, 'data')
  const program = await run(dataDir)
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  const writers = Array.from({ length: 6 }, (_, at) => new Writer(program, token, `writer-${at}`))
  const stop = () => Promise.all(writers.map((writer) => writer.stop()))
  onTestFinished(async () => void (await stop()))

  for (const name of ['first', 'second']) {
    for (const writer of writers) writer.begin()
    const least = () => Math.min(...writers.map(({ acknowledged }) => acknowledged))
    await expect.poll(least).toBeGreaterThan(least() + 2)
    const before = writers.map(({ path, acknowledged }) => ({ path, acknowledged }))
    const backup = join(outside, 'backups')
    const made = await finish(begin(dataDir, 'backup', backup, '--verify'))
    expect(made).toMatchObject({ status: 0 })
    await stop()
    const copy = join(outside, `${name}-restored`)
    expect(await runCli(copy, 'restore', backup)).toMatchObject({ status: 0 })
    const report = await check({ DATA_DIR: copy })
    expect(report).toMatchObject({ damages: [], orphans: [] })
    const second = await run(copy)
    onTestFinished(() => second.kill())
    const found = await readAll(second, await second.logIn())
    for (const { path, acknowledged } of before) {
      expect(Number.parseInt(found.get(path) ?? '', 10)).toBeGreaterThanOrEqual(acknowledged)
    }
    await second.kill()
  }

  await expect.poll(() => check({ DATA_DIR: dataDir })).toMatchObject({ damages: [], orphans: [] })
})

test('a killed backup is not taken for a backup, and the next one goes on', async () => {
  await using service = await start()
  for (let at = 0; at < 40; at += 1) await service.put(`file-${at}`)
  const target = join(makeFolder(), 'backups')

  const { child, goOn } = await beginHalf(service.dataDir, target)
  using watch = new BackupWatch(service.dataDir)
  const isSeen = watch.isRunning
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  await goOn()

  expect([isSeen, watch.isRunning], 'the service deletes no content meanwhile').toEqual([true, false])
  const [left = ''] = readdirSync(join(target, 'snapshots'))
  expect(left).toMatch(/\.partial$/)
  const restored = await runCli(join(target, 'other'), 'restore', target)
  expect([restored.status, restored.errors]).toEqual([1, `There is no finished backup in ${target}.\n`])
  const next = await runCli(service.dataDir, 'backup', target)
  expect(next.out).toMatch(/^Backed up into .*: users\.json, and 40 contents of \d+ bytes\.\n$/)
  expect([next.status, existsSync(join(target, 'snapshots', left))]).toEqual([0, false])
})

test('a backup that is ended by a signal says how to go on, and is no backup', async () => {
  await using service = await start()
  await service.put('file')
  const target = join(makeFolder(), 'backups')

  const { child, goOn } = await beginHalf(service.dataDir, target)
  const ended = finish(child)
  child.kill('SIGTERM')
  await goOn()
  const { status, errors } = await ended

  expect([status, errors]).toEqual([1, 'Interrupted: run the same command again to continue.\n'])
  expect(readdirSync(join(target, 'snapshots'))).toEqual([])
})

test('a further backup copies what the folder lacks, and each can be restored', async () => {
  await using service = await start()
  const outside = makeFolder()
  const backups = join(outside, 'backups')
  await service.put('small', 'small')
  await service.put('large', large)
  await runCli(service.dataDir, 'backup', backups)
  const [first = ''] = readdirSync(join(backups, 'snapshots'))
  const file = join(backups, 'blobs', digestOf(large).slice(0, 2), digestOf(large))
  const { ino } = statSync(file)
  await service.put('small', 'smaller')
  await service.put('more', 'more')

  const second = await runCli(service.dataDir, 'backup', backups, '--verify')
  const named = join(backups, 'snapshots', first)
  const older = await runCli(join(outside, 'older'), 'restore', named)
  rmSync(named, { recursive: true })
  const newer = await runCli(join(outside, 'newer'), 'restore', backups, '--verify')

  expect([second, older, newer].map(({ status }) => status)).toEqual([0, 0, 0])
  expect(statSync(file).ino).toBe(ino)
  const reports = await Promise.all(['older', 'newer'].map((name) => check({ DATA_DIR: join(outside, name) })))
  expect(reports).toMatchObject([
    { files: 2, contents: 2, damages: [], orphans: [] },
    { files: 3, contents: 3, damages: [], orphans: [] },
  ])
})

test('a restore overwrites no running service, and neither service nor backup begins on half a restore', async () => {
  await using service = await start()
  await service.put('a')
  const backup = join(makeFolder(), 'monday')
  await runCli(service.dataDir, 'backup', backup)
  const half = makeFolder()
  mkdirSync(join(half, 'restore.partial'))

  const over = await finish(begin(service.dataDir, 'restore', backup))
  const { status } = await service.call('GET', '/static/a')
  const started = spawnSync(process.execPath, [join(import.meta.dirname, '../../dist/main.js')], {
    env: { ...env(half), PORT: '0', LOG_LEVEL: 'silent' },
    encoding: 'utf8',
  })

  expect([over.status, over.errors]).toEqual([1, `Another process is using ${service.dataDir}: stop it first.\n`])
  expect(status).toBe(200)
  const refusal = `A restore into ${half} was interrupted: run it again, or delete everything in it.\n`
  expect([started.status, started.stderr]).toEqual([1, refusal])
  const halfBackup = await runCli(half, 'backup', join(makeFolder(), 'half'))
  expect([halfBackup.status, halfBackup.errors]).toEqual([1, refusal])
})

test('a backup on a full disk says so and leaves nothing behind', async () => {
  using disk = mountSmallDisk(4)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  await using service = await start()
  for (let at = 0; at < 6; at += 1) await service.put(`file-${at}`, randomBytes(1_000_000))

  const { status, errors } = await runCli(service.dataDir, 'backup', join(disk.folder, 'monday'))

  expect([status, errors]).toEqual([1, expect.stringMatching(/^The disk is full: .*\.\n$/)])
  expect(readdirSync(disk.folder)).toEqual([])
})

test('a restore onto a full disk says so, and is continued once there is space', async () => {
  // With room to spare: bytes that are being written count twice for a moment, in memory and on the disk.
  using disk = mountSmallDisk(16)
  expect(disk === undefined || disk.folder !== '').toBe(true)
  if (!disk) return
  await using service = await start()
  for (let at = 0; at < 3; at += 1) await service.put(`file-${at}`, randomBytes(1_000_000))
  const monday = join(makeFolder(), 'monday')
  await runCli(service.dataDir, 'backup', monday)
  const [copy, other] = [join(disk.folder, 'copy'), join(disk.folder, 'other')]
  writeFileSync(other, Buffer.alloc(13_000_000))

  const full = await runCli(copy, 'restore', monday)
  rmSync(other)
  const continued = await runCli(copy, 'restore', monday)

  expect([full.status, full.errors]).toEqual([
    1,
    expect.stringMatching(/(?:^|\n)The disk is full: free space and try again( \(.*\))?\.\n$/),
  ])
  expect(continued.status).toBe(0)
})

test('compressed forms are not backed up', async () => {
  await using service = await start()
  await service.put('long.txt', 'the same again and again\n'.repeat(2000))
  await expect.poll(async () => (await service.storedContents()).length).toBe(4)
  const outside = makeFolder()
  await runCli(service.dataDir, 'backup', join(outside, 'monday'))

  await runCli(join(outside, 'copy'), 'restore', join(outside, 'monday'))

  expect(filesBelow(join(outside, 'copy/blobs'))).toHaveLength(1)
  expect(rowsIn(join(outside, 'copy'))).toEqual([])
})

test('damaged contents fail a backup that names their files, unless they are skipped', async () => {
  await using service = await start()
  await service.put('sound', 'sound')
  await service.put('one', 'small')
  await service.put('two', 'small')
  await service.put('three', large)
  alter(service.dataDir, { digest: digestOf('small') }, () => undefined)
  alter(service.dataDir, { digest: digestOf(large) }, (bytes) => bytes.subarray(1))
  const outside = makeFolder()
  const monday = join(outside, 'monday')

  const refused = await runCli(service.dataDir, 'backup', monday)
  const left = readdirSync(join(monday, 'snapshots'))
  const made = await runCli(service.dataDir, 'backup', monday, '--skip-damaged', '--verify')
  const checked = await runCli(service.dataDir, 'check', monday, '--verify')
  const restored = await runCli(join(outside, 'copy'), 'restore', monday)

  expect(globSync(join(monday, 'snapshots/*/verified'))).toEqual([])
  const named = [
    `  one: its content ${digestOf('small')} is missing`,
    `  two: its content ${digestOf('small')} is missing`,
    `  three: its content ${digestOf(large)} has 59999 bytes instead of 60000`,
  ]
  expect([refused.status, left]).toEqual([1, []])
  for (const line of named) {
    expect(refused.errors.split('\n')).toContain(line)
    for (const { status, out } of [made, checked, restored]) {
      expect([status, out.split('\n').includes(line)]).toEqual([0, true])
    }
  }
  for (const { out } of [made, restored]) expect(out).toMatch(/^2 of them left out, since damaged:$/m)
  const copy = await check({ DATA_DIR: join(outside, 'copy') })
  expect(copy).toMatchObject({ files: 1, damages: [], orphans: [] }) // Damaged files are left out.
})

test('a check and a restore name altered contents of the manifest without reading every byte', async () => {
  await using service = await start()
  const sound = Buffer.alloc(40_000)
  await service.put('sound', sound)
  await service.put('one', large)
  alter(service.dataDir, { digest: digestOf(large) }, (bytes) => Buffer.alloc(bytes.length))
  const outside = makeFolder()
  const monday = join(outside, 'monday')
  await runCli(service.dataDir, 'backup', monday, '--skip-damaged', '--verify')

  const checked = await runCli(service.dataDir, 'check', monday)
  const restored = await runCli(join(outside, 'copy'), 'restore', monday)

  const named = `  one: its content ${digestOf(large)} has been altered`
  for (const { status, out } of [checked, restored]) {
    expect([status, out.split('\n').includes(named)]).toEqual([0, true])
  }
  for (const file of filesBelow(join(monday, 'blobs'))) rmSync(file)
  const { status, errors } = await runCli(service.dataDir, 'check', monday)
  expect([status, errors]).toEqual([1, expect.stringContaining(`  sound: its content ${digestOf(sound)} is missing`)])
})

test('after a restore a proxy can read content files by their group, and the first start serves and stores', async () => {
  await using service = await start()
  await service.put('large', large)
  await service.put('small', 'small')
  const far = makeFarDirectory() // Another disk, so that nothing is linked.
  await runCli(service.dataDir, 'backup', join(far, 'monday'))
  const copy = join(makeFolder(), 'copy')
  await runCli(copy, 'restore', join(far, 'monday'))

  const [directory = '', , file = ''] = blobPathOf(digestOf(large))
  const modeOf = (...names: string[]) => statSync(join(copy, 'blobs', ...names)).mode & 0o777
  expect([modeOf(), modeOf(directory)]).toEqual([0o750, 0o750])
  expect(statSync(filesBelow(join(copy, 'blobs'))[0] ?? '').mode & 0o777).toBe(0o640)
  expect(filesBelow(join(copy, 'blobs'))[0]?.endsWith(file)).toBe(true)
  const program = await run(copy)
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  const found = await readAll(program, token)
  const stored = await program.send(token, 'upload', [{ name: 'file', content: 'new', filename: 'new' }])
  expect([found.get('small'), found.get('large'), stored.status]).toEqual(['small', large, 201])
  expect(program.output()).not.toMatch(/"level":"?(?:warn|error|40|50)/)
})

test.each([[[]], [['backup']], [['backup', 'a', 'b']], [['backup', 'a', '--force']], [['keep', 'a']]])(
  '%j is answered with how to use it',
  async (args) => {
    const { status, errors } = await runCli('/nowhere', ...args)

    expect([status, errors?.split('\n')[0]]).toEqual([
      2,
      'Back up DATA_DIR (/nowhere), and restore it. With DATABASE_URL: the database instead.',
    ])
  },
)

test('a folder without a store is reported', async () => {
  const { status, errors } = await runCli('/nowhere', 'backup', '/nowhere-else')

  expect([status, errors]).toEqual([1, 'There is nothing of the static-service in /nowhere.\n'])
})

test('metrics tell when the last backup was made, and when one was last verified', async () => {
  const backups = join(makeFolder(), 'backups')
  await using service = await start({ env: { BACKUP_DIR: backups } })
  const scrape = async () => {
    const headers = { authorization: 'Bearer metrics-token-of-tests' }
    const { bytes } = await service.call('GET', '/metrics', { headers })
    const figure = (name: string) =>
      new RegExp(`^backup_last_${name}_timestamp_seconds (.*)$`, 'm').exec(String(bytes))?.[1]
    return [figure('success'), figure('verified')].map(Number)
  }
  const begun = Math.floor(Date.now() / 1000)

  const before = await scrape()
  await runCli(service.dataDir, 'backup', backups)
  const [made = 0, unverified] = await scrape()
  await runCli(service.dataDir, 'backup', backups, '--verify', '--keep', '1')
  const [second = 0, verified = 0] = await scrape()

  expect([before, unverified]).toEqual([[Number.NaN, Number.NaN], Number.NaN])
  expect(made).toBeGreaterThanOrEqual(begun)
  expect([second > made, verified >= second]).toEqual([true, true])
  expect(readdirSync(join(backups, 'snapshots'))).toHaveLength(1)
})
