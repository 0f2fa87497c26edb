import { statfsSync } from 'node:fs'
import { insufficientStorage } from '../../errors.ts'

/**
 * The free space of a data directory, of which uploads leave a part to the databases: on a full disk they could not
 * even record a deletion. Synchronous: the kernel answers from memory, in less time than the thread pool takes to be
 * woken.
 */
export class DiskSpace {
  readonly #dataDir: string
  readonly #reusableBytes: () => number
  readonly #reserve: number

  /** `reusableBytes` are those of free pages in the content database, which a deletion does not give back to the disk. */
  constructor(dataDir: string, reusableBytes: () => number) {
    const { blocks, bsize } = statfsSync(dataDir)
    this.#dataDir = dataDir
    this.#reusableBytes = reusableBytes
    this.#reserve = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / 8))
  }

  /** Whether only the part of the databases is left. */
  get isShort(): boolean {
    return this.#freeBytes < this.#reserve
  }

  /** @throws if there is no room for another file. */
  demandForFile(): void {
    if (this.isShort) throw insufficientStorage()
  }

  /** @throws if there is no room for another row in the content database. */
  demandForRow(): void {
    const free = this.#freeBytes
    if (free >= this.#reserve) return
    // The write-ahead logs need room on the disk even where the row needs none.
    if (free < this.#reserve / 2) throw insufficientStorage()
    if (free + this.#reusableBytes() < this.#reserve) throw insufficientStorage()
  }

  get #freeBytes() {
    const { bavail, bsize } = statfsSync(this.#dataDir)
    return bavail * bsize
  }
}

const maxReserveBytes = 16_777_216
