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
        at += await this.#readSome(bytes.subarray(at), start + at)
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

  /** Fills the buffer as far as the next chunk reaches; returns the number of bytes. */
  async #readSome(into: Buffer, start: number): Promise<number> {
    const download =
      this.#download?.start === start
        ? this.#download
        : await this.#begin(start, start + into.length)
    if (download.rest.length === 0) {
      const { value, done } = await download.chunks.next()
      if (done) throw new Error(`a download ended at ${start} instead of ${download.end}`)
      download.rest = value
    }
    const copied = download.rest.copy(into)
    download.rest = download.rest.subarray(copied)
    download.start += copied
    return copied
  }

  // Of the expected range, or of these bytes.
  async #begin(start: number, end: number): Promise<Download> {
    this.#close()
    const expected = this.#expected
    const isExpected = expected && start >= expected.start && end <= expected.end
    const range = { start, end: isExpected ? expected.end : end }
    const abort = new AbortController()
    const found = await this.#bucket.get(this.#object.key, range, abort.signal)
    if (!found) throw new DamagedObject(`the object ${this.#object.key} is missing`)
    const { body, etag } = found
    if (this.#object.etag !== undefined && etag !== this.#object.etag) {
      abort.abort()
      throw new DamagedObject(`the object ${this.#object.key} is not the one that was stored`)
    }
    body.on('error', () => undefined) // Reported by the read that awaits it.
    const chunks: AsyncIterator<Buffer> = body[Symbol.asyncIterator]()
    this.#download = { ...range, abort, chunks, rest: Buffer.alloc(0) }
    return this.#download
  }

  // A connection whose response was read to its end is used again.
  #close() {
    const download = this.#download
    this.#download = undefined
    if (!download) return
    if (download.start < download.end) download.abort.abort()
    else void download.chunks.next().catch(() => undefined)
  }
}

/** The body of one response, from `start` on. The stream below is read only as far as is asked for. */
interface Download extends Range {
  abort: AbortController
  chunks: AsyncIterator<Buffer>
  rest: Buffer
}

/** Retrying does not help. */
class DamagedObject extends Error {}

// Without a byte in between.
const maxFailures = 3
