import { createHash } from 'node:crypto'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { ignoreMissing } from './durable-files.ts'

/** A blob opened for reading. Its bytes stay until this is disposed of, once, even if its files are deleted. */
export interface OpenBlob extends AsyncDisposable {
  readonly size: number
  /** Identifies the file or object as it is now; undefined for bytes that are in memory. */
  readonly stamp: string | undefined
  /** Announces sequential reads of these bytes: an object store fetches them in one request. */
  expect?(start: number, end: number): void
  /** Reads up to `length` bytes, fewer at the end of the blob; into the given buffer, if any. */
  read(start: number, length: number, into?: Buffer): Promise<Buffer>
}

export const openBytes = (bytes: Buffer): OpenBlob => ({
  size: bytes.length,
  stamp: undefined,
  read: async (start, length, into) => {
    const slice = bytes.subarray(start, start + length)
    return into ? into.subarray(0, slice.copy(into)) : slice
  },
  [Symbol.asyncDispose]: async () => undefined,
})

/** Opens a file to read; undefined if it does not exist. */
export async function openBlobFile(file: string): Promise<OpenBlob | undefined> {
  // Without blocking: a named pipe would wait for a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(ignoreMissing)
  if (!handle) return undefined
  const found = await statFile(handle).catch(async (error) => {
    await handle.close()
    throw error
  })
  const size = Number(found.size)
  return {
    size,
    stamp: stampOf(found),
    read: (start, length, into) => {
      const there = Math.max(0, Math.min(length, size - start))
      return fill(into?.subarray(0, there) ?? Buffer.allocUnsafe(there), handle, start)
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

/** @throws as a read would, if it is a directory or another thing that has no bytes of its own. */
async function statFile(handle: FileHandle) {
  const found = await handle.stat({ bigint: true })
  if (found.isFile()) return found
  const code = found.isDirectory() ? 'EISDIR' : 'ESPIPE'
  throw Object.assign(new Error(`${code}: not a regular file`), { code })
}

// One call may read fewer bytes than asked for.
async function fill(bytes: Buffer, handle: FileHandle, start: number): Promise<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
    if (bytesRead === 0) throw new Error('a stored content was truncated while it was read')
    at += bytesRead
  }
  return bytes
}

/** Identifies the bytes of a file by inode, size and modification time. Hard links and mode changes keep it. */
export const stampOf = ({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }) =>
  `${ino}.${size}.${mtimeNs}`

/** All bytes of a blob, in pieces of this size. */
export async function* piecesOf(blob: OpenBlob, pieceBytes = 1_048_576): AsyncGenerator<Buffer> {
  blob.expect?.(0, blob.size)
  for (let at = 0; at < blob.size; at += pieceBytes) yield await blob.read(at, Math.min(pieceBytes, blob.size - at))
}

/** What is wrong with a blob: `fault` is a predicate, such as `is missing`. */
export class BlobFault extends Error {
  readonly fault: string

  constructor(digest: string, fault: string) {
    super(`the blob ${digest} ${fault}`)
    this.fault = fault
  }
}

/** A blob's SHA-256 digest in hex, and its size in bytes. */
export interface BlobRef {
  digest: string
  size: number
}

/** As `piecesOf`. @throws {BlobFault} before the first piece of another size, and after the last one of other bytes. */
export async function* verifiedPieces(
  blob: OpenBlob | undefined,
  { digest, size }: BlobRef,
  pieceBytes?: number,
): AsyncGenerator<Buffer> {
  if (!blob) throw new BlobFault(digest, 'is missing')
  if (blob.size !== size) throw new BlobFault(digest, `has ${blob.size} bytes instead of ${size}`)
  const hash = createHash('sha256')
  for await (const piece of piecesOf(blob, pieceBytes)) {
    hash.update(piece)
    yield piece
  }
  if (hash.digest('hex') !== digest) throw new BlobFault(digest, 'has been altered')
}

/** The fault of a blob, or undefined. Reads all bytes of one of the right size. */
export async function findFault(blob: OpenBlob | undefined, ref: BlobRef): Promise<string | undefined> {
  try {
    for await (const _piece of verifiedPieces(blob, ref));
    return undefined
  } catch (error) {
    if (error instanceof BlobFault) return error.fault
    throw error
  }
}
