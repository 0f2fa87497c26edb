import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { Bucket, UploadedPart } from './bucket.ts'

export interface Multipart {
  key: string
  uploadId: string
}

interface Source {
  key: string
  file: string
  digest: string
  size: number
}

interface Transfer {
  bucket: Bucket
  /** The memory of all uploads together. */
  memory: ByteBudget
  /** Called with the id of a multipart upload before its first part is sent. */
  onMultipart: (uploadId: string) => Promise<void>
  onProgress: () => Promise<void>
}

/** Uploads a file as an object, in parts if it is large. Returns the entity tag. Parts of a failed upload are discarded. */
export async function uploadObject(
  source: Source,
  dependencies: Transfer,
): Promise<string | undefined> {
  await using handle = await open(source.file, 'r')
  if (source.size > maxSingleBytes) return await uploadParts(handle, source, dependencies)
  const { bucket, memory } = dependencies
  return await memory.run(source.size, async () => {
    return bucket.put(source.key, await readWhole(handle, source.size), source.digest)
  })
}

async function uploadParts(
  handle: FileHandle,
  { key, size }: Source,
  { bucket, memory, onMultipart, onProgress }: Transfer,
): Promise<string | undefined> {
  const uploadId = await bucket.startMultipart(key)
  try {
    await onMultipart(uploadId)
    const partBytes = partBytesOf(size)
    const uploadPart = async (at: number, buffer: Buffer): Promise<UploadedPart> => {
      const start = at * partBytes
      const bytes = buffer.subarray(0, Math.min(partBytes, size - start))
      const where = { key, uploadId, number: at + 1, file: handle, start }
      const part = await sendPart(bytes, where, { bucket })
      await onProgress()
      return part
    }
    // Each worker has one buffer: new ones for each part would wait for the garbage collector.
    const withBuffer = (work: (buffer: Buffer) => Promise<void>) =>
      memory.run(partBytes, () => work(Buffer.allocUnsafeSlow(partBytes)))
    const parts = await mapConcurrently(Math.ceil(size / partBytes), uploadPart, withBuffer)
    return await bucket.finishMultipart({ key, uploadId, size }, parts)
  } catch (error) {
    // The client does not wait for it: the store may be silent. The sweep of garbage tries again.
    bucket.abortMultipart(key, uploadId).catch(() => undefined)
    throw error
  }
}

/** Sends a part of a file, by way of a buffer of its length. */
export async function sendPart(
  bytes: Buffer,
  { file, start, ...where }: Multipart & { number: number; file: FileHandle; start: number },
  { bucket }: { bucket: Bucket },
): Promise<UploadedPart> {
  const hash = createHash('sha256')
  await readInto(bytes, file, { start, onPiece: (piece) => hash.update(piece) })
  return bucket.putPart(where, bytes, hash.digest('hex'))
}

/** The first bytes of a file. */
export async function readWhole(file: FileHandle, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  await readInto(bytes, file, { start: 0 })
  return bytes
}

const mebibyte = 1_048_576
const maxSingleBytes = 16 * mebibyte
const minPartBytes = 8 * mebibyte
// S3 allows 10,000.
const maxParts = 9000
const maxConcurrentParts = 3

/** The size of all parts but the last. */
export const partBytesOf = (size: number) =>
  Math.max(minPartBytes, Math.ceil(size / maxParts / mebibyte) * mebibyte)

// Rejects once no task runs any more: a part must not arrive after the upload was aborted.
async function mapConcurrently<T>(
  count: number,
  task: (at: number, buffer: Buffer) => Promise<T>,
  withBuffer: (work: (buffer: Buffer) => Promise<void>) => Promise<void>,
): Promise<T[]> {
  const results: T[] = []
  let next = 0
  let failure: { error: unknown } | undefined
  const work = async (buffer: Buffer) => {
    while (next < count && !failure) {
      const at = next
      next += 1
      try {
        results[at] = await task(at, buffer)
      } catch (error) {
        failure ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: maxConcurrentParts }, () => withBuffer(work)))
  if (failure) throw failure.error
  return results
}

/** Reads in pieces, so that hashing them does not hold up the event loop. */
async function readInto(
  bytes: Buffer,
  handle: FileHandle,
  { start, onPiece }: { start: number; onPiece?: (piece: Uint8Array) => void },
): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const piece = Math.min(mebibyte, bytes.length - at)
    const { bytesRead } = await handle.read(bytes, at, piece, start + at)
    if (bytesRead === 0) throw new Error('a temporary file was truncated before it was uploaded')
    onPiece?.(bytes.subarray(at, at + bytesRead))
    at += bytesRead
  }
}

interface Waiting {
  bytes: number
  resolve: () => void
}

/** Bounds the memory of concurrent tasks: each takes so many bytes of a common budget, first come, first served. */
export class ByteBudget {
  readonly #maxBytes: number
  readonly #waiting: Waiting[] = []
  #used = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Runs a task once its bytes are free. More bytes than the whole budget count as the whole budget. */
  async run<T>(bytes: number, task: () => Promise<T>): Promise<T> {
    const share = Math.min(bytes, this.#maxBytes)
    await this.#acquire(share)
    try {
      return await task()
    } finally {
      this.#used -= share
      this.#admit()
    }
  }

  async #acquire(bytes: number) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ bytes, resolve })
    this.#admit()
    await promise
  }

  #admit() {
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      if (this.#used + next.bytes > this.#maxBytes) return
      this.#used += next.bytes
      this.#waiting.shift()
      next.resolve()
    }
  }
}
