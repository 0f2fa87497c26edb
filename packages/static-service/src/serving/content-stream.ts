import { Readable } from 'node:stream'
import { HttpError } from '@domains-and-files/http'
import type { OpenBlob } from '../blobs/blob-reader.ts'
import type { Piece } from '../rfc9110/byte-ranges.ts'
import { chunkBytes } from './chunk-cache.ts'

/** The bytes of a representation: small ones in memory, others open on the disk, to be disposed of by the caller. */
export type Content = Buffer | OpenBlob

/**
 * The pieces of a content as a response body. A returned stream must be read or destroyed, which closes the blob. Rejects,
 * with the blob closed, when the first bytes cannot be read: no header has been sent yet.
 */
export async function bodyOf(
  content: Content,
  pieces: Piece[],
  digest: string,
): Promise<Buffer | Readable> {
  if (!Buffer.isBuffer(content))
    return BlobStream.open(content, readChunks(content, pieces, digest))
  const [first = Buffer.alloc(0), ...others] = pieces.map((piece) =>
    Buffer.isBuffer(piece) ? piece : content.subarray(piece.start, piece.end),
  )
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

type Chunks = AsyncGenerator<Buffer, void>

/** Reads one chunk ahead, so that the disk works while the socket drains. */
class BlobStream extends Readable {
  readonly #blob: OpenBlob
  readonly #chunks: Chunks
  #next: Promise<IteratorResult<Buffer, void>>

  static async open(blob: OpenBlob, chunks: Chunks): Promise<BlobStream> {
    try {
      return new BlobStream(blob, chunks, await chunks.next())
    } catch (error) {
      await blob[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(blob: OpenBlob, chunks: Chunks, first: IteratorResult<Buffer, void>) {
    // The one chunk ahead is enough for a client that does not read.
    super({ highWaterMark: 0 })
    this.#blob = blob
    this.#chunks = chunks
    this.#next = Promise.resolve(first)
  }

  override _read() {
    this.#next.then(
      ({ value }) => {
        if (this.destroyed) return
        if (value) {
          this.#next = this.#chunks.next()
          // Reported by the read that awaits it.
          this.#next.catch(() => undefined)
        }
        this.push(value ?? null)
      },
      (error) => this.destroy(error),
    )
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void) {
    // A descriptor is not closed under a running read.
    this.#next
      .catch(() => undefined)
      .then(() => this.#blob[Symbol.asyncDispose]())
      .then(
        () => done(error),
        (failure) => done(error ?? failure),
      )
  }
}

// Full chunks are read into two buffers in turn: new ones took an eighth of the time of a large file. A chunk is requested
// once the socket has drained the one before the last, as a full chunk always fills the socket; smaller chunks might not
// have been sent yet, and have buffers of their own.
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
