import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable, pipeline as startPipeline, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { fsyncDirectory, writeNew } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import {
  type BlobRef,
  blobTable,
  type PrivateFiles,
  type Row,
  type Table,
  verifiedName,
} from './archive.ts'

const Digest = z.string().regex(/^[0-9a-f]{64}$/)
const Name = z.string().regex(/^[a-z._-]+$/)

const Manifest = z.object({
  format: z.literal(1),
  service: z.string(),
  made_at: z.iso.datetime(),
  /** In the order in which they are restored; each is `<name>.ndjson.zst`, one JSON object a row. */
  tables: z.array(z.object({ name: Name, rows: z.int(), sha256: Digest })),
  /** Private files, such as `users.json`. */
  files: z.array(z.object({ name: Name, sha256: Digest })),
  blobs: z.object({ count: z.int(), bytes: z.int() }),
  /** Blobs that were damaged when the backup was made, and are not in the repository. */
  damaged: z.array(z.object({ digest: Digest, fault: z.string() })),
})

/** What a snapshot says of itself. Written last: an unfinished one has none. */
export type Manifest = z.infer<typeof Manifest>

const manifestName = 'manifest.json'

/** The folder of a snapshot by its name. */
export const snapshotFolder = (repository: string, name: string) =>
  join(repository, 'snapshots', name)

/** @throws {DataDirError} when it is no finished snapshot. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, manifestName), 'utf8').catch(() => undefined)
  if (text === undefined) throw new DataDirError(`There is no finished backup in ${folder}.`)
  try {
    return Manifest.parse(JSON.parse(text))
  } catch (error) {
    throw new DataDirError(
      `${join(folder, manifestName)} cannot be read: it is damaged, or of a newer version of this program.`,
      { cause: error },
    )
  }
}

/** A finished snapshot. */
export class Snapshot {
  readonly folder: string
  readonly manifest: Manifest

  constructor(folder: string, manifest: Manifest) {
    this.folder = folder
    this.manifest = manifest
  }

  /** The rows of a table, in batches. */
  async *rows<Each extends Row>(table: string): AsyncGenerator<Each[]> {
    if (!this.manifest.tables.some(({ name }) => name === table)) return
    const file = createReadStream(join(this.folder, fileOf(table)))
    // The iteration below throws its errors.
    const input = startPipeline(file, createZstdDecompress(), () => undefined)
    let rest = ''
    let batch: Each[] = []
    for await (const text of input.setEncoding('utf8')) {
      const lines = `${rest}${text}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        batch.push(JSON.parse(line, decodeBuffer))
        if (batch.length < batchRows) continue
        yield batch
        batch = []
      }
    }
    if (batch.length > 0) yield batch
  }

  /** The blobs that it refers to, by digest. */
  blobs(): AsyncGenerator<(BlobRef & Row)[]> {
    return this.rows(blobTable)
  }

  async readFiles(): Promise<PrivateFiles> {
    const { files } = this.manifest
    const read = async ({ name }: { name: string }) =>
      [name, await readFile(join(this.folder, name))] as const
    return Object.fromEntries(await Promise.all(files.map(read)))
  }

  /** Records that every byte of it was read and is right, for `readBackupTimes`; not on a read-only disk. */
  async setVerified(): Promise<void> {
    const file = join(this.folder, verifiedName)
    await writeFile(file, `${new Date().toISOString()}\n`).catch((error) => {
      if (!['EROFS', 'EACCES'].includes(error.code)) throw error
    })
  }

  /** Compares its files with their digests. @throws {DataDirError} */
  async verify(): Promise<void> {
    const { tables, files } = this.manifest
    const all = [...tables.map(({ name, sha256 }) => ({ name: fileOf(name), sha256 })), ...files]
    for (const { name, sha256 } of all) {
      const hash = createHash('sha256')
      await pipeline(createReadStream(join(this.folder, name)), hash)
      if (hash.digest('hex') !== sha256)
        throw new DataDirError(`${join(this.folder, name)} has been altered.`)
    }
  }
}

/** A snapshot that is being made. It has its name, the time, once it is finished. */
export class SnapshotWriter {
  readonly folder: string
  readonly #tables: Manifest['tables'] = []
  readonly #files: Manifest['files'] = []

  static async create(repository: string): Promise<SnapshotWriter> {
    const name = new Date().toISOString().replaceAll(/[:.]/g, '-')
    const writer = new SnapshotWriter(`${snapshotFolder(repository, name)}.partial`)
    await mkdir(writer.folder, { mode: 0o700 })
    return writer
  }

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Copies a table, flushed. `onRows` receives how many rows were copied. */
  async addTable({ name, rows }: Table, signal: AbortSignal, onRows: (count: number) => void) {
    const hash = createHash('sha256')
    let count = 0
    const lines = async function* () {
      for await (const batch of rows()) {
        yield batch.map((row) => `${JSON.stringify(encodeBuffers(row))}\n`).join('')
        count += batch.length
        onRows(batch.length)
      }
    }
    const hashed = new Transform({
      transform(chunk, _encoding, done) {
        hash.update(chunk)
        done(null, chunk)
      },
    })
    const file = join(this.folder, fileOf(name))
    const output = createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true })
    await pipeline(Readable.from(lines()), createZstdCompress(), hashed, output, { signal })
    this.#tables.push({ name, rows: count, sha256: hash.digest('hex') })
  }

  async addFiles(files: PrivateFiles): Promise<void> {
    for (const [name, bytes] of Object.entries(files)) {
      await writeNew(join(this.folder, name), bytes)
      this.#files.push({ name, sha256: createHash('sha256').update(bytes).digest('hex') })
    }
  }

  /** The tables as they were copied. */
  read(): Snapshot {
    return new Snapshot(this.folder, this.#manifest({ service: '', damaged: [] }))
  }

  /** Makes it a finished snapshot, durably. */
  async finish(result: Pick<Manifest, 'service' | 'damaged' | 'blobs'>): Promise<Snapshot> {
    const manifest = this.#manifest(result)
    const folder = this.folder.replace(/\.partial$/, '')
    await writeNew(join(this.folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
    await fsyncDirectory(this.folder)
    await rename(this.folder, folder)
    await fsyncDirectory(dirname(folder))
    return new Snapshot(folder, manifest)
  }

  #manifest(
    result: Pick<Manifest, 'service' | 'damaged'> & { blobs?: Manifest['blobs'] },
  ): Manifest {
    return {
      format: 1,
      made_at: new Date().toISOString(),
      tables: this.#tables,
      files: this.#files,
      blobs: { count: 0, bytes: 0 },
      ...result,
    }
  }
}

const batchRows = 500

const fileOf = (table: string) => `${table}.ndjson.zst`

// By default JSON has a number for each byte.
const encodeBuffers = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value,
    ]),
  )

function decodeBuffer(_name: string, value: unknown): unknown {
  const isEncoded = typeof value === 'object' && value !== null && 'base64' in value
  return isEncoded ? Buffer.from(String(value.base64), 'base64') : value
}
