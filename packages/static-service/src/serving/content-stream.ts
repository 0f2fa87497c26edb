import { HttpError, type RawBody } from '@domains-and-files/http'
import type { Piece } from '../rfc9110/byte-ranges.ts'
import type { Chunk, LargeContent } from './chunk-memory.ts'

/** The bytes of a representation: small ones in memory, others open on the disk, to be disposed of by the caller. */
export type Content = Buffer | LargeContent

export function joinPieces(content: Buffer, pieces: Piece[]): Buffer {
  const [first = Buffer.alloc(0), ...others] = pieces.map((piece) =>
    Buffer.isBuffer(piece) ? piece : content.subarray(piece.start, piece.end),
  )
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

/**
 * The pieces of a content in chunks; each is valid until the next one is requested. While memory suffices one chunk is read
 * ahead, so that the disk works while the socket drains. The content is closed after the last chunk, after a failure, and by
 * `return`.
 */
export class ContentStream implements RawBody {
  readonly #content: LargeContent
  readonly #digest: string
  readonly #pieces: Piece[]
  /** Bytes of the first piece that were read. */
  #position = 0
  #current: Chunk | undefined
  #ahead: Promise<Chunk | undefined> | undefined

  /** Rejects, with the content closed, when the first bytes cannot be read: no header has been sent yet. */
  static async open(
    content: LargeContent,
    pieces: Piece[],
    digest: string,
  ): Promise<ContentStream> {
    const stream = new ContentStream(content, pieces, digest)
    try {
      await stream.#readAhead()
    } catch (error) {
      await stream.return()
      throw error
    }
    return stream
  }

  private constructor(content: LargeContent, pieces: Piece[], digest: string) {
    this.#content = content
    this.#pieces = [...pieces]
    this.#digest = digest
  }

  get isScarce(): boolean {
    return this.#content.memory.isScarce
  }

  async next(): Promise<IteratorResult<Buffer, void>> {
    this.#releaseCurrent()
    try {
      const chunk = await (this.#ahead ?? this.#read())
      this.#ahead = undefined
      if (!chunk) return await this.return()
      this.#current = chunk
      // Its failure is reported by the call that awaits it.
      if (!this.isScarce) this.#readAhead().catch(() => undefined)
      return { done: false, value: chunk.bytes }
    } catch (error) {
      await this.return()
      throw error
    }
  }

  async return(): Promise<IteratorResult<Buffer, void>> {
    // A descriptor is not closed under a running read.
    const unread = await this.#ahead?.catch(() => undefined)
    this.#ahead = undefined
    unread?.release()
    this.#releaseCurrent()
    await this.#content.blob[Symbol.asyncDispose]()
    return { done: true, value: undefined }
  }

  #readAhead() {
    this.#ahead = this.#read()
    return this.#ahead
  }

  async #read(): Promise<Chunk | undefined> {
    const [piece] = this.#pieces
    if (!piece) return undefined
    if (Buffer.isBuffer(piece)) {
      this.#pieces.shift()
      return { bytes: piece, release: () => undefined }
    }
    const { start, end } = piece
    if (this.#position === 0) this.#content.blob.expect?.(start, end)
    const chunk = await this.#acquire(start + this.#position, end)
    this.#position += chunk.bytes.length
    if (start + this.#position >= end) {
      this.#pieces.shift()
      this.#position = 0
    }
    return chunk
  }

  async #acquire(start: number, end: number): Promise<Chunk> {
    try {
      return await this.#content.memory.acquire(this.#content, start, end)
    } catch (cause) {
      if (cause instanceof HttpError) throw cause
      const failure = new Error(`the blob ${this.#digest} cannot be read`, { cause })
      throw Object.assign(failure, { code: Object(cause).code })
    }
  }

  #releaseCurrent() {
    this.#current?.release()
    this.#current = undefined
  }
}
