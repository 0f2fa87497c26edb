import { Readable } from 'node:stream'
import type { OpenBlob } from '../blobs/blob-store.ts'
import type { Piece, Slice } from '../rfc9110/byte-ranges.ts'

/** The bytes of a form: small ones in memory, others open on the disk, and to be closed by who asked for them. */
export type Content = Buffer | OpenBlob

/**
 * The pieces of a content, ready to be sent. Whoever takes the stream must read or destroy it: either closes the blob.
 * Rejects, with the blob closed, when the first bytes cannot be read, so that nothing was promised yet.
 */
export async function bodyOf(
  content: Content,
  pieces: Piece[],
  digest: string,
): Promise<Buffer | Readable> {
  if (!Buffer.isBuffer(content)) return streamPieces(content, readChunks(content, pieces, digest))
  const [first = Buffer.alloc(0), ...others] = pieces.map((piece) =>
    Buffer.isBuffer(piece) ? piece : content.subarray(piece.start, piece.end),
  )
  return others.length === 0 ? first : Buffer.concat([first, ...others])
}

/** Closes what is not going to be sent. */
export async function closeContent(content: Content) {
  if (!Buffer.isBuffer(content)) await content[Symbol.asyncDispose]()
}

// Several times what a socket takes before it says that it is full: see `readChunks`.
const chunkBytes = 256 * 1024

async function streamPieces(blob: OpenBlob, chunks: AsyncGenerator<Buffer>): Promise<Readable> {
  const first = await chunks.next().catch(async (error) => {
    await blob[Symbol.asyncDispose]()
    throw error
  })
  // Failures are met by whoever reads; here it matters only when the last reading has ended.
  let reading: Promise<unknown> = Promise.resolve()
  let isFirst = true
  return new Readable({
    // One chunk for a client that does not read; reading ahead was measured to gain nothing.
    highWaterMark: 0,
    read() {
      const coming = isFirst ? Promise.resolve(first) : chunks.next()
      isFirst = false
      reading = coming.then(
        ({ value }) => this.push(value ?? null),
        (error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      // A descriptor is not closed under a read that is still running.
      reading
        .then(() => blob[Symbol.asyncDispose]())
        .then(
          () => done(error),
          (failure) => done(error ?? failure),
        )
    },
  })
}

// All full chunks of an answer are read into one buffer: a new one for each was an eighth of the time of a large file, and
// memory that waited to be collected. The next chunk is asked for when the socket has drained, and a chunk of this size
// never goes without that; smaller ones could still be on their way, and have buffers of their own.
async function* readChunks(blob: OpenBlob, pieces: Piece[], digest: string) {
  let reused: Buffer | undefined
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) {
      yield piece
      continue
    }
    for (let start = piece.start; start < piece.end; start += chunkBytes) {
      const slice = { start, end: Math.min(start + chunkBytes, piece.end) }
      const isFull = slice.end - start === chunkBytes
      if (isFull) reused ??= Buffer.allocUnsafeSlow(chunkBytes)
      yield await readChunk(blob, slice, { digest, into: isFull ? reused : undefined })
    }
  }
}

async function readChunk(
  blob: OpenBlob,
  { start, end }: Slice,
  { digest, into }: { digest: string; into: Buffer | undefined },
): Promise<Buffer> {
  try {
    const chunk = await blob.read(start, end - start, into)
    if (chunk.length === end - start) return chunk
  } catch (cause) {
    throw new Error(`the blob ${digest} cannot be read`, { cause })
  }
  throw new Error(`the blob ${digest} has become shorter than it was when opened`)
}
