import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { workerData } from 'node:worker_threads'
import { SqliteSql } from '@domains-and-files/persistence'
import { serveCalls, toPlain } from '../../sqlite/worker-commits.ts'
import { type CatalogCommand, ChangeGroups, isAlone } from '../changes/change-groups.ts'
import type { CatalogOptions } from '../changes/group.ts'

// The only thread that writes to the catalog, so that the event loop does not wait for fsync.

const maxReserveBytes = 8_388_608

/**
 * A file of a few megabytes that is deleted when the disk is full, so that deletions can still be committed: SQLite
 * needs room in its WAL even to delete. It is written again once the disk has room.
 */
class DiskReserve {
  readonly #file: string
  readonly #dataDir: string
  #isReleased: boolean

  constructor(dataDir: string) {
    this.#file = join(dataDir, 'disk-reserve')
    this.#dataDir = dataDir
    this.#isReleased = statSync(this.#file, { throwIfNoEntry: false }) === undefined
    this.refill()
  }

  /** Deletes the file, and truncates the write-ahead log. */
  release(): void {
    this.#remove()
    this.#isReleased = true
    truncateLog()
  }

  /** Writes the file again if it was released and the disk has plenty of room. */
  refill(): void {
    if (!this.#isReleased) return
    try {
      const { blocks, bavail, bsize } = statfsSync(this.#dataDir)
      const bytes = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / 32))
      if (bavail * bsize < 4 * bytes) return
      // Random bytes: a compressing file system would reserve no space for zeros.
      writeFileSync(this.#file, randomBytes(bytes), { mode: 0o600 })
      this.#isReleased = false
    } catch {
      this.#remove()
    }
  }

  #remove(): void {
    try {
      rmSync(this.#file, { force: true })
    } catch {
      // Thrown, it would replace the outcome of the commit.
    }
  }
}

const { file, ...options }: { file: string } & CatalogOptions = workerData
const sql = new SqliteSql({ file })
const reserve = new DiskReserve(dirname(file))
const groups = new ChangeGroups({ sql, reserve, ...options })

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
