import { type FileHandle, open } from 'node:fs/promises'
import type { OpenBlob } from './blob-store.ts'

/** A content that is in memory already. */
export const openBytes = (bytes: Buffer): OpenBlob => ({
  size: bytes.length,
  changed: 0,
  stamp: '',
  read: async (start, length, into) => {
    const slice = bytes.subarray(start, start + length)
    if (!into) return slice
    return into.subarray(0, slice.copy(into))
  },
  [Symbol.asyncDispose]: async () => undefined,
})

/** A file to read, or undefined if there is none; `onClose` is called once it has been closed. */
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
