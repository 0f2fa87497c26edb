import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { appendFile, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Bytes that arrived, in a file. */
export interface StoredBytes {
  file: string
  size: number
  md5: string
  sha256: string
}

interface StoredObject {
  file: string
  size: number
  etag: string
}

/** The objects of one bucket, and its unfinished multipart uploads. */
export class S3Objects {
  readonly objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, { key: string; parts: Map<number, StoredBytes> }>()
  /** Every key that an object was ever stored under. */
  readonly everStored: string[] = []
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Writes a body to a file that is not an object yet. */
  async receive(body: Readable): Promise<StoredBytes> {
    const file = join(this.#folder, randomUUID())
    const [md5, sha256] = [createHash('md5'), createHash('sha256')]
    let size = 0
    const meter = new Transform({
      transform(chunk, _encoding, done) {
        md5.update(chunk)
        sha256.update(chunk)
        size += chunk.length
        done(null, chunk)
      },
    })
    await pipeline(body, meter, createWriteStream(file))
    return { file, size, md5: md5.digest('hex'), sha256: sha256.digest('hex') }
  }

  put(key: string, { file, size, md5 }: StoredBytes): string {
    return this.#store(key, { file, size, etag: `"${md5}"` })
  }

  startUpload(key: string): string {
    const id = randomUUID()
    this.uploads.set(id, { key, parts: new Map() })
    return id
  }

  /** Joins parts; a code of S3 if they cannot be joined. */
  async finishUpload(id: string, numbers: number[]): Promise<{ etag: string } | { code: string }> {
    const upload = this.uploads.get(id)
    if (!upload) return { code: 'NoSuchUpload' }
    const parts = numbers.map((number) => upload.parts.get(number))
    const found = parts.filter((part) => part !== undefined)
    if (found.length !== parts.length) return { code: 'InvalidPart' }
    if (found.slice(0, -1).some(({ size }) => size < minPartBytes))
      return { code: 'EntityTooSmall' }
    const file = join(this.#folder, randomUUID())
    for (const part of found) await appendFile(file, await readFile(part.file))
    for (const part of found) await rm(part.file)
    const size = found.reduce((sum, part) => sum + part.size, 0)
    const md5 = createHash('md5')
    for (const part of found) md5.update(Buffer.from(part.md5, 'hex'))
    this.uploads.delete(id)
    return {
      etag: this.#store(upload.key, { file, size, etag: `"${md5.digest('hex')}-${found.length}"` }),
    }
  }

  async abortUpload(id: string): Promise<boolean> {
    for (const { file } of this.uploads.get(id)?.parts.values() ?? []) await rm(file)
    return this.uploads.delete(id)
  }

  async remove(key: string): Promise<void> {
    const object = this.objects.get(key)
    this.objects.delete(key)
    if (object) await rm(object.file)
  }

  /** Replaces the bytes of an object behind the service's back. */
  async alter(key: string, change: (bytes: Buffer) => Buffer): Promise<void> {
    const object = this.objects.get(key)
    if (!object) throw new Error(`no object ${key}`)
    const stored = await this.receive(Readable.from([change(await readFile(object.file))]))
    await rename(stored.file, object.file)
    this.objects.set(key, { ...object, size: stored.size, etag: `"${stored.md5}"` })
  }

  /** The SHA-256 digest of an object; undefined if there is none. */
  async digestOf(key: string): Promise<string | undefined> {
    const object = this.objects.get(key)
    return (
      object &&
      createHash('sha256')
        .update(await readFile(object.file))
        .digest('hex')
    )
  }

  read(object: StoredObject, start: number, end: number): Readable {
    return start < end ? createReadStream(object.file, { start, end: end - 1 }) : Readable.from([])
  }

  #store(key: string, object: StoredObject): string {
    this.objects.set(key, object)
    this.everStored.push(key)
    return object.etag
  }
}

// The last part may be smaller.
const minPartBytes = 5_242_880
