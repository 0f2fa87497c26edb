import { HttpError } from '@domains-and-files/http'
import type { OpenBlob } from '@domains-and-files/persistence'
import { contentsUnavailable } from '../../errors.ts'
import type { Slice } from '../../rfc9110/byte-ranges.ts'
import type { Bucket } from './bucket.ts'

export interface StoredObject {
  key: string
  size: number
  /** Undefined: the store gave none. */
  etag: string | undefined
}

type Confirm = (found: StoredObject) => Promise<boolean>

/**
 * An object opened for reading; sends no request before the first read. Sequential reads share one download, which
 * pauses between reads (back-pressure), and resumes at the same byte after a lost connection.
 */
export class ObjectReader implements OpenBlob {
  readonly size: number
  readonly stamp: string
  readonly #bucket: Bucket
  #object: StoredObject
  readonly #confirm: Confirm | undefined
  #expected: Slice | undefined
  #download: Download | undefined

  /** `confirm`: decides about an object with another entity tag than that which was stored. */
  constructor(bucket: Bucket, object: StoredObject, confirm?: Confirm) {
    this.size = object.size
    this.stamp = object.key
    this.#bucket = bucket
    this.#object = object
    this.#confirm = confirm
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
        // Retries other errors, such as a download that the store closed because the client was slow.
        if (error instanceof HttpError || error instanceof DamagedObject) throw error
        if (failures === maxFailures) throw contentsUnavailable(error)
      }
    }
    return bytes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close()
  }

  /** Copies the next chunk, or a part of it, into the buffer; returns the number of bytes. */
  async #readSome(into: Buffer, start: number): Promise<number> {
    const download = this.#download?.start === start ? this.#download : await this.#begin(start, start + into.length)
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

  // Downloads to the end of the expected range if it contains these bytes, else these bytes only.
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
      if (!(await this.#confirm?.({ ...this.#object, etag })))
        throw new DamagedObject(`the object ${this.#object.key} is not the one that was stored`)
      this.#object = { ...this.#object, etag }
      return this.#begin(start, end)
    }
    body.on('error', () => undefined) // The read that awaits it reports it.
    const chunks: AsyncIterator<Buffer> = body[Symbol.asyncIterator]()
    this.#download = { ...range, abort, chunks, rest: Buffer.alloc(0) }
    return this.#download
  }

  // Keeps the connection for reuse if its response was read to the end.
  #close() {
    const download = this.#download
    this.#download = undefined
    if (!download) return
    if (download.start < download.end) download.abort.abort()
    else void download.chunks.next().catch(() => undefined)
  }
}

/** The body of one response, from `start` on, read on demand only. */
interface Download extends Slice {
  abort: AbortController
  chunks: AsyncIterator<Buffer>
  rest: Buffer
}

class DamagedObject extends Error {}

// Consecutive failures, without a byte received in between.
const maxFailures = 3
