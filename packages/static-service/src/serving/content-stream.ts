import type { RawBody } from '@domains-and-files/http'
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
 * Streams the pieces of a blob in chunks; a chunk is valid until the next call of `next`. Reads the first chunk before
 * any header is sent. Closes the blob after the last chunk, after a failure, and on `return`.
 */
export async function openStream(content: LargeContent, pieces: Piece[]) {
  const chunks = sendChunks(content, pieces)
  await chunks.next()
  return {
    next: () => chunks.next(),
    return: () => chunks.return(),
    get isScarce() {
      return content.memory.isScarce
    },
  } satisfies RawBody
}

// Unless memory is scarce, reads one chunk ahead, so that the disk works while the socket drains.
async function* sendChunks(content: LargeContent, pieces: Piece[]): AsyncGenerator<Buffer, void> {
  await using _closed = content.blob
  const chunks = readChunks(content, pieces)
  let ahead: Promise<IteratorResult<Chunk, void>> | undefined = chunks.next()
  try {
    await ahead
    yield Buffer.alloc(0) // For `openStream`.
    for (;;) {
      const { value: chunk } = await (ahead ?? chunks.next())
      ahead = undefined
      if (!chunk) return
      try {
        if (!content.memory.isScarce) ahead = chunks.next()
        ahead?.catch(() => undefined) // Thrown by the next round.
        yield chunk.bytes
      } finally {
        chunk.release()
      }
    }
  } finally {
    // Closing the descriptor must wait for a running read.
    const unread = await ahead?.catch(() => undefined)
    unread?.value?.release()
  }
}

async function* readChunks(content: LargeContent, pieces: Piece[]): AsyncGenerator<Chunk, void> {
  const { blob, memory } = content
  for (const piece of pieces) {
    if (Buffer.isBuffer(piece)) {
      yield { bytes: piece, release: () => undefined }
      continue
    }
    blob.expect?.(piece.start, piece.end)
    for (let at = piece.start; at < piece.end; ) {
      const chunk = await memory.acquire(content, at, piece.end)
      at += chunk.bytes.length
      yield chunk
    }
  }
}
