import * as fs from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { identity, name, runDataCommand, SqliteSql, type SqlTransaction, sql } from '../../src/index.ts'
import { accounts, makeFolder } from '../support/archived-service.ts'

const runBackup = (file: string, { folder = join(makeFolder(), 'backups'), fault }: Fault = {}) =>
  run(file, ['backup', folder], { fault })

/** Runs a command on the table `items` of a SQLite file; resolves with the exit status and the text of standard error. */
async function run(file: string, args: string[], { fault, dataDir = makeFolder() }: Options = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const never = () => Promise.reject(new Error('not used'))
  const status = await runDataCommand(
    {
      name: 'sample',
      tables: [{ name: 'items', key: ['id'] }],
      accounts,
      openDatabase: never,
      async openFolder() {
        const database = new SqliteSql({ file, isReadOnly: true })
        const snapshot = <T>(work: (snapshot: SqlTransaction) => Promise<T>) =>
          database.snapshot(async (transaction) => {
            const result = await work(transaction)
            if (fault) throw fault
            return result
          })
        return { database: { snapshot }, write: never, [Symbol.asyncDispose]: () => database.close() }
      },
    },
    args,
    { env: { DATA_DIR: dataDir }, stdout, stderr },
  )
  stderr.end()
  return { status, message: await text(stderr) }
}

interface Fault {
  folder?: string
  /** Of the disk, while rows are copied. */
  fault?: Error | undefined
}

interface Options extends Pick<Fault, 'fault'> {
  dataDir?: string
}

async function makeDatabase() {
  const file = join(makeFolder(), 'sample.sqlite')
  await new SqliteSql({
    file,
    migrations: { sample: [sql`create table ${name('items')} (id ${identity}, text text)`] },
  }).close()
  return file
}

test('a backup is not made where a service empties folders, but beside them in the data directory', async () => {
  const file = await makeDatabase()
  const dataDir = makeFolder()
  const refused = ['tmp', 'uploads/backups', 'blobs']
  const made = ['backups', 'tmp-backups', 'a/tmp']

  const found = await Promise.all(
    [...refused, ...made].map((folder) => run(file, ['backup', join(dataDir, folder)], { dataDir })),
  )

  expect(found).toEqual([
    ...refused.map((folder) => ({
      status: 1,
      message: `${join(dataDir, folder)} is the service's own: choose another folder.\n`,
    })),
    ...made.map(() => ({ status: 0, message: '' })),
  ])
  expect(fs.readdirSync(dataDir).sort()).toEqual(['a', 'backups', 'tmp-backups'])
})

test('a backup where no directory can be made is refused in a sentence', async () => {
  const file = await makeDatabase()

  const found = [await run(file, ['backup', join(file, 'backups')]), await run(file, ['backup', file])]

  expect(found).toEqual(
    Array(2).fill({ status: 1, message: expect.stringMatching(/^Cannot use this directory \(E.*\)\.\n$/) }),
  )
})

test('a check with --verify is recorded in the backup, and no other one', async () => {
  const folder = join(makeFolder(), 'backups')
  const file = await makeDatabase()
  await run(file, ['backup', folder])
  const isRecorded = () => fs.globSync(join(folder, 'snapshots/*/verified')).length === 1
  const check = async (...options: string[]) => [(await run(file, ['check', folder, ...options])).status, isRecorded()]

  expect([await check(), await check('--verify')]).toEqual([
    [0, false],
    [0, true],
  ])
})

test('a number of backups to keep is at least one', async () => {
  const refused = await run(await makeDatabase(), ['backup', join(makeFolder(), 'backups'), '--keep', '0'])

  expect(refused).toEqual({ status: 2, message: expect.stringMatching(/\n\n--keep takes a number from 1\.\n$/) })
})

test('a backup onto a full disk that fails among the rows leaves nothing there', async () => {
  const file = await makeDatabase()
  const folder = join(makeFolder(), 'backups')
  const fault = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })

  const found = await runBackup(file, { folder, fault })

  expect(found).toEqual({
    status: 1,
    message: 'The disk is full: free space and try again (no space left on device).\n',
  })
  expect(fs.existsSync(folder)).toBe(false)
})

test('a backup of a database that is damaged, or is none, fails with one sentence', async () => {
  const damaged = join(makeFolder(), 'damaged.sqlite')
  const database = new SqliteSql({
    file: damaged,
    migrations: { sample: [sql`create table ${name('items')} (id ${identity}, text text)`] },
  })
  for (let id = 1; id <= 200; id += 1)
    await database.run(sql`insert into ${name('items')} (text) values (${'x'.repeat(500)})`)
  await database.close()
  const bytes = fs.readFileSync(damaged)
  fs.writeFileSync(damaged, bytes.fill(0xa5, 5 * 4096))
  const other = join(makeFolder(), 'other.sqlite')
  fs.writeFileSync(other, 'no database '.repeat(1000))

  const found = [await runBackup(damaged), await runBackup(other)]

  expect(found).toEqual([
    { status: 1, message: expect.stringMatching(/^The database is damaged, or the disk fails \(/) },
    { status: 1, message: 'The database is damaged, or the disk fails (file is not a database).\n' },
  ])
})
