import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { workerData } from 'node:worker_threads'
import { SqliteSql } from '@domains-and-files/persistence'
import { serveCalls, toPlain } from '../../sqlite/worker-commits.ts'
import { type CatalogCommand, ChangeGroups, isAlone } from '../changes/change-groups.ts'
import type { CatalogOptions } from '../changes/group.ts'

// The only thread that writes to the catalog, so that the event loop does not wait for fsync.

const { file, ...options }: { file: string } & CatalogOptions = workerData
const sql = new SqliteSql({ file })

// A file of a few megabytes that is deleted when the disk is full, so that deletions can still be committed: SQLite needs
// room in its WAL even to delete. It is written again once the disk has room.
const reserveFile = join(dirname(file), 'disk-reserve')
const maxReserveBytes = 8_388_608
let isReleased = statSync(reserveFile, { throwIfNoEntry: false }) === undefined

/** Deletes the file, and truncates the write-ahead log. */
function release() {
  removeReserve()
  isReleased = true
  truncateLog()
}

/** Writes the file again if it was released and the disk has plenty of room. */
function refill() {
  if (!isReleased) return
  try {
    const { blocks, bavail, bsize } = statfsSync(dirname(file))
    const bytes = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / 32))
    if (bavail * bsize < 4 * bytes) return
    // Random bytes: a compressing file system would reserve no space for zeros.
    writeFileSync(reserveFile, randomBytes(bytes), { mode: 0o600 })
    isReleased = false
  } catch {
    removeReserve()
  }
}

function removeReserve() {
  try {
    rmSync(reserveFile, { force: true })
  } catch {
    // Thrown, it would replace the outcome of the commit.
  }
}

refill()
const groups = new ChangeGroups({ sql, reserve: { release, refill }, ...options })

const methods = { commit }

export type WriteWorkerMethods = typeof methods

serveCalls(methods, () => sql.close())

async function commit(commands: CatalogCommand[]) {
  const committed = await groups.commit(commands)
  if (commands.some(isAlone)) truncateLog()
  for (const outcome of committed.outcomes) if ('error' in outcome) outcome.error = toPlain(outcome.error)
  return committed
}

// A large change leaves a large log. Does not wait for readers of older snapshots: the writer has no busy timeout.
function truncateLog() {
  try {
    sql.database.pragma('wal_checkpoint(TRUNCATE)')
  } catch {
    // On a full disk the log stays: the next commit writes over it.
  }
}
