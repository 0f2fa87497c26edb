import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { Bucket, UploadedPart } from './bucket.ts'
import type { ByteBudget } from './byte-budget.ts'

interface Source {
  key: string
  file: string
  digest: string
  size: number
}

interface Dependencies {
  bucket: Bucket
  /** The memory of all uploads together. */
  memory: ByteBudget
  /** Called with the id of a multipart upload before its first part is sent. */
  onMultipart: (uploadId: string) => Promise<void>
  /** Called after each part. */
  onProgress: () => Promise<void>
}

/** Uploads a file as an object, in parts if it is large. Returns the entity tag. Parts of a failed upload are discarded. */
export async function uploadObject(
  source: Source,
  dependencies: Dependencies,
): Promise<string | undefined> {
  await using handle = await open(source.file, 'r')
  if (source.size > maxSingleBytes) return await uploadParts(handle, source, dependencies)
  const { bucket, memory } = dependencies
  return await memory.run(source.size, async () => {
    const bytes = await readAt(handle, { start: 0, length: source.size })
    return bucket.put(source.key, bytes, source.digest)
  })
}

async function uploadParts(
  handle: FileHandle,
  { key, size }: Source,
  { bucket, memory, onMultipart, onProgress }: Dependencies,
): Promise<string | undefined> {
  const uploadId = await bucket.startMultipart(key)
  try {
    await onMultipart(uploadId)
    const partBytes = partBytesOf(size)
    const uploadPart = async (at: number): Promise<UploadedPart> => {
      const start = at * partBytes
      const length = Math.min(partBytes, size - start)
      const part = await memory.run(length, async () => {
        const hash = createHash('sha256')
        const bytes = await readAt(handle, { start, length }, (piece) => hash.update(piece))
        return bucket.putPart({ key, uploadId, number: at + 1 }, bytes, hash.digest('hex'))
      })
      await onProgress()
      return part
    }
    const parts = await mapConcurrently(Math.ceil(size / partBytes), uploadPart)
    return await bucket.finishMultipart({ key, uploadId, size }, parts)
  } catch (error) {
    await bucket.abortMultipart(key, uploadId).catch(() => undefined) // The sweep of garbage tries again.
    throw error
  }
}

const mebibyte = 1_048_576
const maxSingleBytes = 16 * mebibyte
const minPartBytes = 8 * mebibyte
// S3 allows 10,000.
const maxParts = 9000
const maxConcurrentParts = 3

/** The size of all parts but the last. */
const partBytesOf = (size: number) =>
  Math.max(minPartBytes, Math.ceil(size / maxParts / mebibyte) * mebibyte)

// Rejects once no task runs any more: a part must not arrive after the upload was aborted.
async function mapConcurrently<T>(count: number, task: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  let failure: { error: unknown } | undefined
  const work = async () => {
    while (next < count && !failure) {
      const at = next
      next += 1
      try {
        results[at] = await task(at)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: maxConcurrentParts }, work))
  if (failure) throw failure.error
  return results
}

/** Reads in pieces, so that hashing them does not hold up the event loop. */
async function readAt(
  handle: FileHandle,
  { start, length }: { start: number; length: number },
  onPiece: (piece: Uint8Array) => void = () => undefined,
): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let at = 0; at < length; ) {
    const piece = Math.min(mebibyte, length - at)
    const { bytesRead } = await handle.read(bytes, at, piece, start + at)
    if (bytesRead === 0) throw new Error('a temporary file was truncated before it was uploaded')
    onPiece(bytes.subarray(at, at + bytesRead))
    at += bytesRead
  }
  return bytes
}
