import { readFile } from 'node:fs/promises'
import { maxSmallBytes } from '../blob-path.ts'
import type { ResumableBlob, SavedBlob } from '../blob-store.ts'
import type { StoredBlob } from '../staged-blob.ts'
import { StagingFile, type StagingMemory } from '../staging-file.ts'
import type { UploadedPart } from './bucket.ts'
import type { PendingContent } from './content-commit.ts'
import type { ObjectUploads } from './object-uploads.ts'

interface Dependencies {
  uploads: ObjectUploads
  memory: StagingMemory
  newTmpFile: () => string
  /** Of all parts but the last. */
  partBytes: number
  /** A content waits for its commit until the returned function is called. */
  addPending: (content: PendingContent) => () => void
}

/** What is saved of a multipart upload. */
export interface SavedParts {
  key: string
  uploadId: string
  parts: UploadedPart[]
  /** Of each of them. */
  partBytes: number
  /** Set once the parts are an object. */
  etag?: string | undefined
  isDone?: true
}

/**
 * A content that arrives in several requests: parts of a multipart upload of one size each, and the tail, which is saved with
 * them. A part collects in a temporary file, so that slow uploads hold no memory, and is sent while the next one arrives.
 */
export class ResumableObject implements ResumableBlob {
  readonly #dependencies: Dependencies
  readonly #epoch: number
  #saved: SavedBlob
  #object: SavedParts | undefined
  #part: StagingFile
  #isBegun = false
  #sending: Promise<void> = Promise.resolve()
  #release: (() => void) | undefined

  constructor({ size, state, tail }: SavedBlob, epoch: number, dependencies: Dependencies) {
    this.#saved = { size, state, tail }
    this.#object = state === null ? undefined : JSON.parse(state)
    this.#epoch = epoch
    this.#dependencies = dependencies
    this.#part = this.#newPart()
  }

  async write(chunk: Buffer): Promise<void> {
    await this.#begin()
    for (let at = 0; at < chunk.length; ) {
      const piece = chunk.subarray(at, at + this.#partBytes - this.#part.size)
      await this.#part.write(piece)
      at += piece.length
      if (this.#part.size < this.#partBytes) continue
      await this.#sending
      const part = this.#part
      this.#part = this.#newPart()
      this.#sending = this.#send(part)
      this.#sending.catch(() => undefined) // Thrown by the next write or flush.
    }
  }

  async save(isLast: boolean): Promise<SavedBlob> {
    await this.#begin()
    await this.#sending
    const object = this.#object
    const state = object ? JSON.stringify(object) : null
    // The tail is saved at the end of a request alone: it would be written with each part.
    if (!isLast)
      return state === this.#saved.state
        ? this.#saved
        : { size: this.#sentBytes, state, tail: null }
    const { size, file } = this.#part
    if (size > 0) await this.#part.settle()
    const tail = size > 0 ? await readFile(file) : null
    if (!object?.isDone) this.#saved = { size: this.#sentBytes + size, state, tail }
    if (object) await this.#dependencies.uploads.renew(object)
    return this.#saved
  }

  async seal(): Promise<SavedBlob> {
    const object = this.#object
    const { size, tail } = this.#saved
    if (!object || object.isDone) return this.#saved
    const { uploads } = this.#dependencies
    const etag = await uploads.finish(object, { tail, size, number: this.#nextNumber })
    this.#object = { ...object, etag, isDone: true }
    this.#saved = { size, state: JSON.stringify(this.#object), tail: null }
    return this.#saved
  }

  async *read(): AsyncGenerator<Buffer> {
    const { size, tail } = this.#saved
    if (!this.#object) return yield tail ?? Buffer.alloc(0)
    await using reader = this.#dependencies.uploads.open({
      key: this.#object.key,
      etag: this.#object.etag,
      size,
    })
    reader.expect(0, size)
    for (let at = 0; at < size; at += pieceBytes) yield await reader.read(at, pieceBytes)
  }

  async keep(digest: string): Promise<StoredBlob> {
    const { size, tail } = this.#saved
    const { uploads, addPending } = this.#dependencies
    const bytes = tail ?? Buffer.alloc(0)
    if (this.#object)
      this.#release = addPending({ digest, size, key: this.#object.key, etag: this.#object.etag })
    else if (size <= maxSmallBytes) this.#release = addPending({ digest, size, bytes })
    else {
      const { key, etag, discard } = await uploads.uploadBytes(digest, bytes)
      const release = addPending({ digest, size, key, etag })
      this.#release = () => {
        release()
        discard()
      }
    }
    return { digest, size }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sending.catch(() => undefined)
    await this.#part.remove()
    this.#release?.()
  }

  // The bytes that no part has yet.
  async #begin() {
    if (this.#isBegun) return
    this.#isBegun = true
    if (this.#saved.tail) await this.#part.write(this.#saved.tail)
  }

  async #send(part: StagingFile) {
    const { uploads } = this.#dependencies
    const { file, size: length } = part
    try {
      await part.settle()
      this.#object ??= { ...(await uploads.begin()), parts: [], partBytes: this.#partBytes }
      const { key, uploadId, parts } = this.#object
      const where = { key, uploadId, number: this.#nextNumber }
      const sent = await uploads.sendPart(where, { file, start: 0, length })
      this.#object = { ...this.#object, parts: [...parts, sent] }
    } finally {
      await part.remove()
    }
  }

  #newPart() {
    const { newTmpFile, memory } = this.#dependencies
    return new StagingFile({ file: newTmpFile(), memory })
  }

  get #partBytes() {
    return this.#object?.partBytes ?? this.#dependencies.partBytes
  }

  get #sentBytes() {
    return (this.#object?.parts.length ?? 0) * this.#partBytes
  }

  // A writer that was replaced may still send its next part: under a number that is not used again.
  get #nextNumber() {
    return (this.#object?.parts.length ?? 0) + 1 + this.#epoch
  }
}

const pieceBytes = 1_048_576
