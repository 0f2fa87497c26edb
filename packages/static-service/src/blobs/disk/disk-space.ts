import { accessSync, closeSync, constants, openSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { BackgroundTask, codeOf } from '@domains-and-files/persistence'
import { insufficientStorage } from '../../errors.ts'
import { maxSmallBytes } from '../stored-blob.ts'
import type { SmallBlobs } from './small-blobs.ts'

/** Store options that decide how much room there is. */
export interface RoomOptions {
  /** Bytes kept only for the history, which is dropped when room is needed. */
  pastBytes?: () => number
  /** Drops the oldest history of contents of this size or more, up to so many bytes; returns the number of files. */
  dropPast?: (bytes: number, minSize: number) => Promise<number>
  /** Whether a backup is running: nothing is removed meanwhile. */
  isBackedUp?: () => boolean
  /** Further databases in the data directory, whose write-ahead logs are truncated when space is short. */
  otherDatabases?: () => string[]
  /** Called when reclaiming space or removing blobs failed. Both are retried. */
  onError: (error: unknown) => void
}

interface Dependencies extends RoomOptions {
  dataDir: string
  small: Pick<SmallBlobs, 'isIntact' | 'truncateLogs'>
  settleRemovals: () => Promise<void>
}

/**
 * The free space of a data directory. Reserves a part for the databases: on a full disk they could not even record a
 * deletion. Calls statfs synchronously: the kernel answers from memory, faster than the thread pool wakes.
 */
export class DiskSpace {
  readonly #options: Dependencies
  readonly #reserve: number
  readonly #reservedFiles: number
  #timer: NodeJS.Timeout | undefined
  readonly #truncating: BackgroundTask
  #making: Promise<unknown> = Promise.resolve()

  constructor(options: Dependencies) {
    const { dataDir, small, otherDatabases = () => [], onError } = options
    const { blocks, bsize, files } = statfsSync(dataDir)
    this.#options = options
    this.#truncating = new BackgroundTask({ run: () => small.truncateLogs(otherDatabases()), onError })
    this.#reserve = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / 8))
    this.#reservedFiles = Math.min(maxReservedFiles, Math.floor(files / 8))
  }

  /** `degraded`: free space and history together are less than the reserve of the databases. */
  check(): 'ok' | 'degraded' | 'unavailable' {
    const { dataDir, small, pastBytes } = this.#options
    try {
      if (!small.isIntact || !isWritable(dataDir)) return 'unavailable'
      const short = this.#shortBy(0)
      return short > 0 && short > (pastBytes?.() ?? 0) ? 'degraded' : 'ok'
    } catch {
      return 'unavailable'
    }
  }

  /**
   * Makes room for `held.bytes`, as many as they are by then, if need be by dropping history. Serialized: concurrent
   * calls would each drop that much. `isFile`: what will be written is a file, and no row. @throws if there is none.
   */
  async demand(held: { readonly bytes: number }, isFile = true): Promise<void> {
    // A file that is being written is there already.
    const spared = isFile ? 1 : allFiles
    if (this.#shortBy(held.bytes, spared) === 0) return
    const made = this.#making.then(() => this.#makeRoom(held, spared))
    this.#making = made.catch(() => undefined)
    if (!(await made)) throw insufficientStorage()
  }

  /** @throws if there is no room; drops no history. */
  demandWithoutDrop(): void {
    if (this.#shortBy(0) === 0) return
    void this.#truncating.run()
    throw insufficientStorage()
  }

  /** Call after removals. Their pages are given back with those of the write-ahead logs, at once if space is short. */
  reclaim(): void {
    if (this.#shortBy(this.#reserve) === 0) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#truncating.run()
    }, delayMs).unref()
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#truncating.close()
  }

  // False: dropping all history is not enough.
  async #makeRoom(held: { readonly bytes: number }, spared: number): Promise<boolean> {
    const { pastBytes, dropPast, isBackedUp, settleRemovals } = this.#options
    for (;;) {
      await this.#truncating.run()
      const short = this.#shortBy(held.bytes, spared)
      if (short === 0) return true
      // Drops none in vain. A content goes with its compressed forms, three at most.
      if (pastBytes && short > 4 * pastBytes()) return false
      // Small contents are rows: dropping them gives bytes, but no files.
      const minSize = this.#shortBy(held.bytes, allFiles) > 0 ? 0 : maxSmallBytes + 1
      // While a backup runs, dropped history stays on the disk.
      const dropped = isBackedUp?.() ? 0 : await dropPast?.(short, minSize)
      await settleRemovals()
      if (!dropped) return this.#shortBy(held.bytes, spared) === 0
    }
  }

  // Bytes to free. Where the file system limits the number of files, each missing one counts as 32 KiB; `spared` of them
  // may be missing.
  #shortBy(bytes: number, spared = 0): number {
    const { bavail, bsize, ffree } = statfsSync(this.#options.dataDir)
    const missingFiles = Math.max(0, this.#reservedFiles - ffree - spared)
    return Math.max(missingFiles * maxSmallBytes, this.#reserve + bytes - bavail * bsize, 0)
  }
}

/**
 * Whether files can be written in a data directory and its `tmp`. Opens one: Linux still permits `access` where a file
 * system has stopped after an error. Not a database: closing it would end its locks.
 */
export function isWritable(dataDir: string): boolean {
  try {
    accessSync(join(dataDir, 'tmp'), constants.W_OK)
    closeSync(openSync(join(dataDir, 'writable'), 'a', 0o600))
    return true
  } catch (error) {
    return /^(?:ENOSPC|EDQUOT|EMFILE|ENFILE)$/.test(codeOf(error))
  }
}

const maxReserveBytes = 16_777_216
const maxReservedFiles = 64
const allFiles = Number.POSITIVE_INFINITY
// Long enough for most requests to finish their removals.
const delayMs = 250
