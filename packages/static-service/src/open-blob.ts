import { type FileHandle, open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { OpenBlob } from './store.ts'

/** A file to read, or nothing when there is none; `onClose` is called once it has been closed. */
export async function openFile(file: string, onClose: () => void): Promise<OpenBlob | undefined> {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (!handle) return undefined
  const { size, ino, ctimeMs } = await handle.stat().catch(async (error) => {
    await handle.close()
    throw error
  })
  let isOpen = true
  return {
    size,
    changed: ctimeMs,
    stamp: `${ino}.${size}.${ctimeMs}`,
    read: (start, length, into) => {
      const there = Math.max(0, Math.min(length, size - start))
      return readWhole(handle, start, into?.subarray(0, there) ?? Buffer.allocUnsafe(there))
    },
    stream: (start, end) => new BlobStream(handle, start, Math.min(end, size)),
    async [Symbol.asyncDispose]() {
      if (!isOpen) return
      isOpen = false
      await handle.close()
      onClose()
    },
  }
}

async function readWhole(handle: FileHandle, start: number, bytes: Buffer): Promise<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
    if (bytesRead === 0) throw new Error('a stored content is shorter than it was')
    at += bytesRead
  }
  return bytes
}

// Not createReadStream of the handle: its autoClose and the handle's own close wait for each other.
class BlobStream extends Readable {
  readonly #handle: FileHandle
  readonly #end: number
  #at: number

  constructor(handle: FileHandle, start: number, end: number) {
    super({ highWaterMark: chunkLength })
    this.#handle = handle
    this.#at = start
    this.#end = end
  }

  override _read() {
    const length = Math.min(chunkLength, this.#end - this.#at)
    if (length <= 0) {
      this.push(null)
      return
    }
    this.#handle.read(Buffer.allocUnsafe(length), 0, length, this.#at).then(
      ({ bytesRead, buffer }) => {
        this.#at += bytesRead
        if (bytesRead === 0) this.destroy(new Error('a stored content is shorter than it was'))
        else this.push(buffer.subarray(0, bytesRead))
      },
      (error) => this.destroy(error),
    )
  }
}

// Larger ones are faster for large files and slower for the many small ones (FACTS, 4).
const chunkLength = 262_144
