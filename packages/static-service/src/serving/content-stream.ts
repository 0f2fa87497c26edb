import { HttpError } from '@domains-and-files/http'
import type { OpenBlob } from '../blobs/blob-reader.ts'
import type { Piece } from '../rfc9110/byte-ranges.ts'
import { chunkBytes } from './chunk-cache.ts'

/** The bytes of a representation: small ones in memory, others open on the disk, to be disposed of by the caller. */
export type Content = Buffer | OpenBlob

/** The pieces of a content that is in memory. */
export function joinPieces(content: Buffer, pieces: Piece[]): Buffer {
  const [first = Buffer.alloc(0), ...others] = pieces.map((piece) =>
    Buffer.isBuffer(piece) ? piece : content.subarray(piece.start, piece.end),
  )
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

/**
 * The pieces of a blob in chunks; each is valid until the next one is requested. One chunk is read ahead, so that the disk
 * works while the socket drains. The blob is closed after the last chunk, after a failure, and by `return`.
 */
export class BlobStream implements AsyncIterator<Buffer, void> {
  readonly #blob: OpenBlob
  readonly #chunks: Chunks
  #next: Promise<IteratorResult<Buffer, void>>

  /** Rejects, with the blob closed, when the first bytes cannot be read: no header has been sent yet. */
  static async open(blob: OpenBlob, pieces: Piece[], digest: string): Promise<BlobStream> {
    const chunks = readChunks(blob, pieces, digest)
    try {
      return new BlobStream(blob, chunks, await chunks.next())
    } catch (error) {
      await blob[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(blob: OpenBlob, chunks: Chunks, first: IteratorResult<Buffer, void>) {
    this.#blob = blob
    this.#chunks = chunks
    this.#next = Promise.resolve(first)
  }

  async next(): Promise<IteratorResult<Buffer, void>> {
    try {
      const result = await this.#next
      if (result.done) await this.#blob[Symbol.asyncDispose]()
      else this.#readAhead()
      return result
    } catch (error) {
      await this.#blob[Symbol.asyncDispose]()
      throw error
    }
  }

  async return(): Promise<IteratorResult<Buffer, void>> {
    // A descriptor is not closed under a running read.
    await this.#next.catch(() => undefined)
    await this.#blob[Symbol.asyncDispose]()
    return { done: true, value: undefined }
  }

  #readAhead() {
    this.#next = this.#chunks.next()
    // Reported by the call that awaits it.
    this.#next.catch(() => undefined)
  }
}

type Chunks = AsyncGenerator<Buffer, void>

// Full chunks are read into two buffers in turn: new ones took an eighth of the time of a large file.
async function* readChunks(blob: OpenBlob, pieces: Piece[], digest: string): Chunks {
  const buffers: Buffer[] = []
  let count = 0
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) {
      yield piece
      continue
    }
    blob.expect?.(piece.start, piece.end)
    for (let start = piece.start; start < piece.end; start += chunkBytes) {
      const length = Math.min(chunkBytes, piece.end - start)
      let into: Buffer | undefined
      if (length === chunkBytes && !blob.isShared) {
        into = buffers[count % 2] ??= Buffer.allocUnsafeSlow(chunkBytes)
        count += 1
      }
      yield await readChunk(blob, { start, length, digest, into })
    }
  }
}

interface ChunkRequest {
  start: number
  length: number
  digest: string
  into: Buffer | undefined
}

async function readChunk(blob: OpenBlob, { start, length, digest, into }: ChunkRequest) {
  let chunk: Buffer
  try {
    chunk = await blob.read(start, length, into)
  } catch (cause) {
    if (cause instanceof HttpError) throw cause
    throw new Error(`the blob ${digest} cannot be read`, { cause })
  }
  if (chunk.length === length) return chunk
  throw new Error(`the blob ${digest} has become shorter than it was when opened`)
}
