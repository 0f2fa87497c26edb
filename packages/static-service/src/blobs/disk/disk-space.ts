import { accessSync, constants, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { insufficientStorage } from '../../errors.ts'
import type { SmallBlobs } from './small-blobs.ts'

/** Store options that decide how much room there is. */
export interface RoomOptions {
  /** Bytes kept only for the history, which is dropped when room is needed. */
  pastBytes?: () => number
  /** Drops the oldest history, up to so many bytes; returns the number of files, 0 if there is no history. */
  dropPast?: (bytes: number) => Promise<number>
  /** Whether a backup is running: nothing is removed meanwhile. */
  isBackedUp?: () => boolean
  /** Further databases in the data directory, whose write-ahead logs are truncated when space is short. */
  otherDatabases?: () => string[]
  /** Called when reclaiming space or removing blobs failed. Both are retried. */
  onError: (error: unknown) => void
}

interface Dependencies extends RoomOptions {
  dataDir: string
  small: Pick<SmallBlobs, 'bytes' | 'check' | 'reclaim'>
  /** Resolves when no blob is being removed. */
  settleRemovals: () => Promise<void>
}

/**
 * The free space of a data directory. Reserves a part for the databases: on a full disk they could not even record a
 * deletion. Returns the space of removed rows to the file system in the background. Calls statfs synchronously: the
 * kernel answers from memory, faster than the thread pool wakes.
 */
export class DiskSpace {
  readonly #options: Dependencies
  readonly #reserve: number
  readonly #closing = new AbortController()
  #reclaiming: Promise<void> | undefined
  #making: Promise<unknown> = Promise.resolve()

  constructor(options: Dependencies) {
    const { blocks, bsize } = statfsSync(options.dataDir)
    this.#options = options
    this.#reserve = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / 8))
  }

  /** `degraded`: free space, reusable rows and history together are less than the reserve of the databases. */
  check(): 'ok' | 'degraded' | 'unavailable' {
    const { dataDir, small, pastBytes } = this.#options
    try {
      small.check()
      accessSync(join(dataDir, 'tmp'), constants.W_OK)
      const short = this.#reserve - this.#freeBytes - small.bytes.reusable
      return short > 0 && short > (pastBytes?.() ?? 0) ? 'degraded' : 'ok'
    } catch {
      return 'unavailable'
    }
  }

  /** Makes room for `bytes()` more, if need be by dropping history. @throws if there is none. */
  async demandForFile(bytes = none): Promise<void> {
    if (this.#shortBy(bytes) > 0) await this.#makeRoom(bytes)
  }

  /** Makes room for another small blob likewise. @throws if there is none. */
  async demandForRow(): Promise<void> {
    const free = this.#freeBytes
    if (free >= this.#reserve) return
    // The write-ahead logs need room on the disk even where the row needs none.
    const usable = free + this.#options.small.bytes.reusable
    if (free < this.#reserve / 2 || usable < this.#reserve) await this.#makeRoom(none)
  }

  /** @throws if there is no room for another file. */
  checkForFile(): void {
    if (this.#shortBy(none) === 0) return
    this.#startReclaim() // Truncating the write-ahead logs frees space at least.
    throw insufficientStorage()
  }

  /** Returns the space of removed rows in the background, unless little was removed and the disk has plenty. */
  reclaim(): void {
    if (this.#surplusBytes > 0) this.#startReclaim()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#reclaiming
  }

  // History counts as room: its oldest part is dropped first. Serialized: concurrent calls would each drop that much.
  async #makeRoom(bytes: () => number) {
    this.#startReclaim() // Truncating the write-ahead logs frees space at least.
    const made = this.#making.then(() => this.#dropPast(bytes))
    this.#making = made.catch(() => undefined)
    if (!(await made)) throw insufficientStorage()
  }

  // False: dropping all history was not enough.
  async #dropPast(bytes: () => number): Promise<boolean> {
    const { dropPast, isBackedUp, settleRemovals } = this.#options
    while (this.#shortBy(bytes) > 0) {
      // While a backup runs, dropped history stays on the disk.
      const dropped = isBackedUp?.() ? 0 : await dropPast?.(this.#shortBy(bytes))
      await settleRemovals()
      if (this.#shortBy(bytes) === 0) break
      if (!dropped) return false
      this.#startReclaim()
      await this.#reclaiming
    }
    return true
  }

  // Bytes that must be freed.
  #shortBy(bytes: () => number): number {
    return Math.max(0, this.#reserve + bytes() - this.#freeBytes)
  }

  #startReclaim() {
    this.#reclaiming ??= this.#reclaimAll()
      .catch((error) => {
        if (!this.#closing.signal.aborted) this.#options.onError(error)
      })
      .finally(() => {
        this.#reclaiming = undefined
      })
  }

  // In slices, each followed by a pause of the same length: an upload waits for one slice at most.
  async #reclaimAll() {
    const { signal } = this.#closing
    await wait(delayMs, undefined, { signal })
    for (let failures = 0; ; ) {
      const surplus = Math.max(0, this.#surplusBytes)
      const start = performance.now()
      try {
        // Moving pages needs room in the write-ahead log: halve the slice after each failure.
        await this.#reclaimSlice(Math.min(surplus, Math.ceil(sliceBytes / 2 ** failures)))
        failures = 0
        if (surplus === 0) return
      } catch (error) {
        failures += 1
        if (failures > maxFailures) throw error
      }
      await wait(failures > 0 ? delayMs : performance.now() - start, undefined, { signal })
    }
  }

  async #reclaimSlice(bytes: number) {
    const { small, otherDatabases = () => [] } = this.#options
    const before = small.bytes
    await small.reclaim(bytes, this.#isTight ? otherDatabases() : [])
    const { total, reusable } = small.bytes
    const isStuck = total >= before.total && reusable >= before.reusable
    if (bytes > 0 && isStuck) throw new Error('no space was given back')
  }

  // Keeps slack for future rows, so that a busy database does not shrink and grow all the time.
  get #surplusBytes() {
    const { total, reusable } = this.#options.small.bytes
    return reusable - (this.#isTight ? 0 : Math.max(minSlackBytes, total / 8))
  }

  get #isTight() {
    return this.#freeBytes < 2 * this.#reserve
  }

  get #freeBytes() {
    const { bavail, bsize } = statfsSync(this.#options.dataDir)
    return bavail * bsize
  }
}

const none = () => 0
const maxReserveBytes = 16_777_216
const minSlackBytes = 4_194_304
const sliceBytes = 1_048_576
const maxFailures = 8
// Long enough for most requests to finish their removals.
const delayMs = 250
