import { readFile } from 'node:fs/promises'
import { openBytes } from '@domains-and-files/persistence'
import type { OnSaved, ResumableBlob, SavedBlob } from '../blob-store.ts'
import type { StagedBlob, StagingFile } from '../staging-file.ts'
import { type ContentHash, hashBlob } from '../stored-blob.ts'
import type { UploadedPart } from './bucket.ts'
import type { StoredObject } from './object-reader.ts'
import type { ObjectUploads } from './object-uploads.ts'

interface Dependencies {
  onSaved: OnSaved
  uploads: ObjectUploads
  newPart: () => StagingFile
  /** Size of all parts but the last. */
  partBytes: number
  /** Stages a blob whose bytes are in this file, or in an object. */
  stage: (file: string, arrived?: ContentHash, object?: StoredObject) => StagedBlob
}

export interface SavedParts {
  key: string
  uploadId: string
  parts: UploadedPart[]
  partBytes: number
}

/**
 * A blob that arrives in several requests: equal parts of a multipart upload, and a tail, which is saved with the row.
 * A part collects in a temporary file, so that slow uploads hold no memory. It is sent while the next one arrives.
 */
export class ResumableObject implements ResumableBlob {
  readonly #dependencies: Dependencies
  #saved: SavedBlob
  #object: SavedParts | undefined
  #part: StagingFile
  /** Resolves when the object is kept for longer and the part's file has the saved tail. */
  readonly #begun: Promise<void>
  #sending: Promise<void> | undefined

  constructor(saved: SavedBlob, dependencies: Dependencies) {
    this.#saved = saved
    this.#object = saved.state === null ? undefined : JSON.parse(saved.state)
    this.#dependencies = dependencies
    this.#part = dependencies.newPart()
    this.#begun = this.#begin(saved.tail)
    this.#begun.catch(() => undefined) // Thrown where it is awaited.
  }

  async #begin(tail: Buffer | null) {
    if (this.#object) await this.#dependencies.uploads.renew(this.#object)
    if (tail) await this.#part.write(Buffer.from(tail)) // A copy, since the object keeps the tail.
  }

  async write(chunk: Buffer): Promise<void> {
    await this.#begun
    for (let at = 0; at < chunk.length; ) {
      const piece = chunk.subarray(at, at + this.#partBytes - this.#part.size)
      await this.#part.write(piece)
      at += piece.length
      if (this.#part.size < this.#partBytes) continue
      await this.#sending
      const part = this.#part
      this.#part = this.#dependencies.newPart()
      this.#sending = this.#send(part)
      this.#sending.catch(() => undefined) // Thrown by the next write or save.
    }
  }

  // Saves the tail at the end of a request only: otherwise each part would write it.
  async save(): Promise<Partial<SavedBlob>> {
    await this.#begun
    await this.#sending
    const { file, size } = this.#part
    if (this.#sentBytes + size === this.#saved.size) return {}
    await this.#part.settle()
    return this.#save(await readFile(file))
  }

  async stage(hash: ContentHash | undefined): Promise<StagedBlob> {
    await this.#begun
    const { uploads, stage } = this.#dependencies
    const { size, tail } = this.#saved
    const number = this.#nextNumber
    const object = this.#object && (await uploads.finish(this.#object, { tail, size, number }))
    await using blob = object ? uploads.open(object) : openBytes(tail ?? Buffer.alloc(0))
    await this.#part.settle()
    return stage(this.#part.file, hash ?? (await hashBlob(blob)), object)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([this.#begun, this.#sending])
    await this.#part.remove()
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
    await this.#dependencies.onSaved(this.#save(null))
  }

  #save(tail: Buffer | null) {
    const state = this.#object ? JSON.stringify(this.#object) : null
    const saved = { size: this.#sentBytes + (tail?.length ?? 0), state, tail }
    this.#saved = { ...this.#saved, ...saved }
    return saved
  }

  get #partBytes() {
    return this.#object?.partBytes ?? this.#dependencies.partBytes
  }

  get #sentBytes() {
    return (this.#object?.parts.length ?? 0) * this.#partBytes
  }

  // The epoch changes the number: a replaced writer may still send its next part, under a number not used again.
  get #nextNumber() {
    return (this.#object?.parts.length ?? 0) + 1 + this.#saved.epoch
  }
}
