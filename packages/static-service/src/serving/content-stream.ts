import { HttpError, type RawBody } from '@domains-and-files/http'
import type { Piece } from '../rfc9110/byte-ranges.ts'
import type { Chunk, LargeContent } from './chunk-memory.ts'

/** The bytes of a representation: in memory if small, else an open blob, which the caller disposes of. */
export type Content = Buffer | LargeContent

export function joinPieces(content: Buffer, pieces: Piece[]): Buffer {
  const [first = Buffer.alloc(0), ...others] = pieces.map((piece) =>
    Buffer.isBuffer(piece) ? piece : content.subarray(piece.start, piece.end),
  )
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

/**
 * Streams the pieces of a blob in chunks; a chunk is valid until the next call of `next`. Unless memory is scarce,
 * reads one chunk ahead, so that the disk works while the socket drains. Closes the blob after the last chunk, after a
 * failure, and on `return`.
 */
export class ContentStream implements RawBody {
  readonly #content: LargeContent
  readonly #digest: string
  readonly #pieces: Piece[]
  /** Bytes already read of the first piece. */
  #position = 0
  #current: Chunk | undefined
  #ahead: Promise<Chunk | undefined> | undefined

  /** Reads the first chunk before any header is sent. If that fails, closes the blob and rejects. */
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
      // The next call awaits it and reports a failure.
      if (!this.isScarce) this.#readAhead().catch(() => undefined)
      return { done: false, value: chunk.bytes }
    } catch (error) {
      await this.return()
      throw error
    }
  }

  async return(): Promise<IteratorResult<Buffer, void>> {
    // Closing the descriptor must wait for a running read.
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
