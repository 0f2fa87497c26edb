import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/catalog/sqlite/open-sqlite.ts'
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

  expect(countLocked(program.child.pid)).toBe(3) // Files, blobs, and API tokens.
})
