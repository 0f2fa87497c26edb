import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'

/** Bytes that arrived, in a file. */
export interface StoredBytes {
  file: string
  size: number
  md5: string
  sha256: string
}

interface StoredObject {
  /** The files that it consists of. */
  parts: { file: string; size: number }[]
  size: number
  etag: string
}

/** The objects of one bucket, and its unfinished multipart uploads. */
export class S3Objects {
  readonly objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, { key: string; parts: Map<number, StoredBytes> }>()
  /** Every key that an object was ever stored under, but for that of probes. */
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
    return this.#store(key, { parts: [{ file, size }], size, etag: `"${md5}"` })
  }

  startUpload(key: string): string {
    const id = randomUUID()
    this.uploads.set(id, { key, parts: new Map() })
    return id
  }

  /** Joins parts; a code of S3 if they cannot be joined. */
  finishUpload(id: string, numbers: number[]): { etag: string } | { code: string } {
    const upload = this.uploads.get(id)
    if (!upload) return { code: 'NoSuchUpload' }
    const parts = numbers.map((number) => upload.parts.get(number))
    const found = parts.filter((part) => part !== undefined)
    if (found.length !== parts.length) return { code: 'InvalidPart' }
    if (found.slice(0, -1).some(({ size }) => size < minPartBytes)) return { code: 'EntityTooSmall' }
    const size = found.reduce((sum, part) => sum + part.size, 0)
    const md5 = createHash('md5')
    for (const part of found) md5.update(Buffer.from(part.md5, 'hex'))
    this.uploads.delete(id)
    return {
      etag: this.#store(upload.key, {
        parts: found,
        size,
        etag: `"${md5.digest('hex')}-${found.length}"`,
      }),
    }
  }

  async abortUpload(id: string): Promise<boolean> {
    for (const { file } of this.uploads.get(id)?.parts.values() ?? []) await rm(file)
    return this.uploads.delete(id)
  }

  async remove(key: string): Promise<void> {
    const object = this.objects.get(key)
    this.objects.delete(key)
    for (const { file } of object?.parts ?? []) await rm(file)
  }

  /** Replaces the bytes of an object behind the service's back. */
  async alter(key: string, change: (bytes: Buffer) => Buffer): Promise<void> {
    const object = this.objects.get(key)
    if (!object) throw new Error(`no object ${key}`)
    const altered = change(await buffer(this.read(object, 0, object.size)))
    const { file, size, md5 } = await this.receive(Readable.from([altered]))
    for (const part of object.parts) await rm(part.file)
    this.objects.set(key, { parts: [{ file, size }], size, etag: `"${md5}"` })
  }

  /** Gives an object another entity tag, as encryption, gateways and copies of a bucket do. */
  retag(key: string): void {
    const object = this.objects.get(key)
    if (!object) throw new Error(`no object ${key}`)
    object.etag = `"${randomUUID()}"`
  }

  /** The SHA-256 digest of an object; undefined if there is none. */
  async digestOf(key: string): Promise<string | undefined> {
    const object = this.objects.get(key)
    if (!object) return undefined
    const hash = createHash('sha256')
    await pipeline(this.read(object, 0, object.size), hash)
    return hash.digest('hex')
  }

  /** The bytes from `start` up to `end`. */
  read(object: StoredObject, start: number, end: number): Readable {
    return Readable.from(readParts(object, start, end), { objectMode: false })
  }

  #store(key: string, object: StoredObject): string {
    this.objects.set(key, object)
    if (!key.endsWith('/probe')) this.everStored.push(key)
    return object.etag
  }
}

async function* readParts({ parts }: StoredObject, start: number, end: number) {
  let offset = 0
  for (const { file, size } of parts) {
    const from = Math.max(start - offset, 0)
    const to = Math.min(end - offset, size)
    if (from < to) yield* createReadStream(file, { start: from, end: to - 1 })
    offset += size
  }
}

// The last part may be smaller.
const minPartBytes = 5_242_880
