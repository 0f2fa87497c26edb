import type { Readable } from 'node:stream'
import { HttpError } from '@domains-and-files/http'
import { contentsUnavailable } from '../../errors.ts'
import type { OpenBlob } from '../blob-reader.ts'
import type { Bucket } from './bucket.ts'

export interface StoredObject {
  key: string
  size: number
  /** Undefined: the store gave none. */
  etag: string | undefined
}

interface Range {
  start: number
  end: number
}

/**
 * An object opened for reading. Nothing is requested before the first read. Reads that follow each other share one
 * download, which pauses while nothing is read, and is resumed where it was lost.
 */
export class ObjectReader implements OpenBlob {
  readonly size: number
  readonly stamp: string
  readonly #bucket: Bucket
  readonly #object: StoredObject
  readonly #onClose: () => void
  #expected: Range | undefined
  #download: Download | undefined
  #isOpen = true

  constructor(bucket: Bucket, object: StoredObject, onClose: () => void) {
    this.size = object.size
    this.stamp = object.key
    this.#bucket = bucket
    this.#object = object
    this.#onClose = onClose
  }

  expect(start: number, end: number): void {
    this.#expected = { start, end: Math.min(end, this.size) }
  }

  async read(start: number, length: number, into?: Buffer): Promise<Buffer> {
    const there = Math.max(0, Math.min(length, this.size - start))
    const bytes = into?.subarray(0, there) ?? Buffer.allocUnsafe(there)
    let failures = 0
    for (let at = 0; at < there; ) {
      try {
        const download = await this.#downloadAt(start + at, start + there)
        at += await download.read(bytes.subarray(at))
        failures = 0
      } catch (error) {
        this.#close()
        failures += 1
        // Also a download that the store ended while the client was slow.
        if (error instanceof HttpError || error instanceof DamagedObject) throw error
        if (failures === maxFailures) throw contentsUnavailable(error)
      }
    }
    return bytes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close()
    if (this.#isOpen) this.#onClose()
    this.#isOpen = false
  }

  // The running download if it is at this position, or else a new one: of the expected range, or of these bytes.
  async #downloadAt(start: number, end: number): Promise<Download> {
    if (this.#download?.position === start) return this.#download
    this.#close()
    const expected = this.#expected
    const isExpected = expected && start >= expected.start && end <= expected.end
    const range = { start, end: isExpected ? expected.end : end }
    const abort = new AbortController()
    const found = await this.#bucket.get(this.#object.key, range, abort.signal)
    if (!found) throw new DamagedObject(`the object ${this.#object.key} is missing`)
    const { etag } = this.#object
    if (etag !== undefined && found.etag !== etag) {
      abort.abort()
      throw new DamagedObject(`the object ${this.#object.key} is not the one that was stored`)
    }
    this.#download = new Download(found.body, range, abort)
    return this.#download
  }

  #close() {
    this.#download?.close()
    this.#download = undefined
  }
}

/** Retrying does not help. */
class DamagedObject extends Error {}

// Without a byte in between.
const maxFailures = 3

/** The body of one response. The stream below is read only as far as is asked for. */
class Download {
  position: number
  readonly #end: number
  readonly #abort: AbortController
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(body: Readable, { start, end }: Range, abort: AbortController) {
    this.position = start
    this.#end = end
    this.#abort = abort
    body.on('error', () => undefined) // Reported by the read that awaits it.
    this.#chunks = body[Symbol.asyncIterator]()
  }

  /** Fills the buffer as far as the next chunk reaches; returns the number of bytes. */
  async read(into: Buffer): Promise<number> {
    if (this.#rest.length === 0) {
      const { value, done } = await this.#chunks.next()
      if (done) throw new Error(`a download ended at ${this.position} instead of ${this.#end}`)
      this.#rest = value
    }
    const copied = this.#rest.copy(into)
    this.#rest = this.#rest.subarray(copied)
    this.position += copied
    return copied
  }

  /** A connection whose response was read to its end is used again. */
  close() {
    if (this.position < this.#end) this.#abort.abort()
    else void this.#chunks.next().catch(() => undefined)
  }
}
