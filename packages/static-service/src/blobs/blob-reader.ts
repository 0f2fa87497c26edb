import { type FileHandle, open } from 'node:fs/promises'

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
    if (!into) return slice
    return into.subarray(0, slice.copy(into))
  },
  [Symbol.asyncDispose]: async () => undefined,
})

/** Identifies the bytes of a file by inode, size and modification time. Hard links and mode changes keep it. */
export const stampOf = ({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }) =>
  `${ino}.${size}.${mtimeNs}`

/** Opens a file to read; undefined if it does not exist. Calls `onClose` after the file was closed. */
export async function openFile(file: string, onClose = () => {}): Promise<OpenBlob | undefined> {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (!handle) return undefined
  const found = await handle.stat({ bigint: true }).catch(async (error) => {
    await handle.close()
    throw error
  })
  const size = Number(found.size)
  return {
    size,
    stamp: stampOf(found),
    read: (start, length, into) => {
      const there = Math.max(0, Math.min(length, size - start))
      return readWhole(handle, start, into?.subarray(0, there) ?? Buffer.allocUnsafe(there))
    },
    async [Symbol.asyncDispose]() {
      await handle.close()
      onClose()
    },
  }
}

// One call may read fewer bytes than asked for.
async function readWhole(handle: FileHandle, start: number, bytes: Buffer): Promise<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
    if (bytesRead === 0) throw new Error('a stored content was truncated while it was read')
    at += bytesRead
  }
  return bytes
}
