import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextIteration } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { blobDatabaseFile, SmallBlobs } from '../../src/blobs/disk/small-blobs.ts'
import { databaseFile, openDatabase, openSqliteCatalog } from '../../src/catalog/sqlite/sqlite-catalog.ts'
import { toFile } from '../support/catalogs.ts'
import { run } from '../support/program.ts'

const makeFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'static-locks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Databases that a process has open, by the lock that SQLite keeps on each of them while it is. */
function countLocked(pid: number | undefined): number {
  const lines = existsSync('/proc/locks') ? readFileSync('/proc/locks', 'utf8').split('\n') : []
  return lines
    .filter((line) => line.includes(` READ  ${pid} `) || line.includes(` READ ${pid} `))
    .filter((line) => line.includes(' 1073741826 ')).length
}

// Without these locks, another program that opens a database and closes it takes itself for the last one, and deletes the
// write-ahead log of the running service. Recent versions of SQLite prevent that themselves, 3.40 does not.
test('a running service keeps its locks on its databases', async () => {
  const own = openDatabase(join(makeFolder(), 'own.sqlite'))
  own.database.prepare('select count(*) from sqlite_master').get()
  const isVisible = countLocked(process.pid) > 0
  await own.close()
  if (!isVisible) return
  const program = await run(makeFolder())
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  await program.send(token, 'upload', [{ name: 'file', content: 'x', filename: 'x' }])

  expect(countLocked(program.child.pid)).toBe(4) // Files, blobs, unfinished uploads and API tokens.
})

/** Holds the lock for changes of a database until the test ends. */
function lock(file: string) {
  const other = new Sqlite(file)
  other.exec('begin immediate')
  onTestFinished(() => void other.close())
}

/** Makes twenty changes, of which all but one wait for the first; returns how many have failed when the first has. */
async function failTogether(change: (at: number) => Promise<unknown>): Promise<number> {
  let failed = 0
  const begin = (at: number) =>
    change(at).catch(() => {
      failed += 1
    })
  const first = begin(0)
  await nextIteration()
  await nextIteration()
  for (let at = 1; at < 20; at += 1) void begin(at)
  await first
  await nextIteration()
  return failed
}

test('changes that wait for the lock of another program wait for one time limit together', async () => {
  const folder = makeFolder()
  const catalog = await openSqliteCatalog(folder)
  onTestFinished(() => catalog.close())
  const blobs = new SmallBlobs(folder)
  onTestFinished(() => blobs.close())
  lock(databaseFile(folder))
  lock(blobDatabaseFile(folder))

  const failed = await Promise.all([
    failTogether((at) => catalog.writes.put({ files: [toFile(`${at}`)] })),
    failTogether((at) => blobs.store(String(at).repeat(64).slice(0, 64), 'identity', Buffer.of(at))),
  ])

  expect(failed).toEqual([20, 20])
})
