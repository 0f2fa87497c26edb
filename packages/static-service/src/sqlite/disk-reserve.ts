import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A file of a few megabytes that is given up when the disk is full, so that deletions can still be committed: SQLite
 * needs room in its WAL even to delete. It is written again once the disk has room.
 */
export class DiskReserve {
  readonly #file: string
  readonly #dataDir: string
  #isReleased: boolean

  constructor(dataDir: string) {
    this.#file = join(dataDir, 'disk-reserve')
    this.#dataDir = dataDir
    this.#isReleased = statSync(this.#file, { throwIfNoEntry: false }) === undefined
    this.refill()
  }

  /** Frees the room. */
  release(): void {
    rmSync(this.#file, { force: true })
    this.#isReleased = true
  }

  /** Takes the room again, if it has been freed and the disk has plenty. */
  refill(): void {
    if (!this.#isReleased) return
    try {
      const { blocks, bavail, bsize } = statfsSync(this.#dataDir)
      const bytes = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / 32))
      if (bavail * bsize < 4 * bytes) return
      // Random: a file system that compresses would keep no room for zeros.
      writeFileSync(this.#file, randomBytes(bytes), { mode: 0o600 })
      this.#isReleased = false
    } catch {
      rmSync(this.#file, { force: true })
    }
  }
}

const maxReserveBytes = 8_388_608
