import { createHash, hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable, pipeline as startPipeline } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { z } from 'zod'
import { fsyncDirectory, writeNew } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { BlobRef } from '../open-blob.ts'
import { blobTable, type PrivateFiles, type Row, type Table, verifiedName } from './archived-service.ts'

const Digest = z.string().regex(/^[0-9a-f]{64}$/)
const Name = z.string().regex(/^[a-z._-]+$/)

const Manifest = z.object({
  format: z.literal(1),
  service: z.string(),
  made_at: z.iso.datetime(),
  /** In the order of restoration. Each is a file `<name>.ndjson.zst`, with one JSON object per row. */
  tables: z.array(z.object({ name: Name, rows: z.int(), sha256: Digest })),
  /** Private files, such as `users.json`. */
  files: z.array(z.object({ name: Name, sha256: Digest })),
  blobs: z.object({ count: z.int(), bytes: z.int() }),
  /** Blobs that were damaged when the backup was made, and are not in the repository. */
  damaged: z.array(z.object({ digest: Digest, fault: z.string() })),
})
type Manifest = z.infer<typeof Manifest>

const manifestName = 'manifest.json'

export const snapshotFolder = (repository: string, name: string) => join(repository, 'snapshots', name)

/**
 * A snapshot: rows of one consistent state. Its folder is named by the time. Until it is finished, the name ends in
 * `.partial`.
 */
export class Snapshot {
  readonly folder: string
  readonly manifest: Manifest

  private constructor(folder: string, manifest: Manifest) {
    this.folder = folder
    this.manifest = manifest
  }

  /** Opens a finished snapshot. @throws {DataDirError} if the repository has none of this name. */
  static async open(repository: string, name: string): Promise<Snapshot> {
    const folder = snapshotFolder(repository, name)
    const file = join(folder, manifestName)
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) throw new DataDirError(`There is no finished backup in ${folder}.`)
    try {
      return new Snapshot(folder, Manifest.parse(JSON.parse(text)))
    } catch (cause) {
      throw new DataDirError(`${file} cannot be read: it is damaged, or of a newer version of this program.`, { cause })
    }
  }

  static async begin(repository: string, service: string): Promise<Snapshot> {
    const made_at = new Date().toISOString()
    const folder = `${snapshotFolder(repository, made_at.replaceAll(/[:.]/g, '-'))}.partial`
    await mkdir(folder, { mode: 0o700 })
    const nothing = { tables: [], files: [], blobs: { count: 0, bytes: 0 }, damaged: [] }
    return new Snapshot(folder, { format: 1, service, made_at, ...nothing })
  }

  /** Copies a table, and fsyncs it. `onRows` receives the number of rows copied. */
  async addTable({ name, rows }: Table, signal: AbortSignal, onRows: (count: number) => void) {
    let count = 0
    const lines = async function* () {
      for await (const batch of rows()) {
        yield batch.map((row) => `${JSON.stringify(encodeBuffers(row))}\n`).join('')
        count += batch.length
        onRows(batch.length)
      }
    }
    const file = join(this.folder, fileOf(name))
    const output = createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true })
    await pipeline(Readable.from(lines()), createZstdCompress(), output, { signal })
    this.manifest.tables.push({ name, rows: count, sha256: await hashFile(file) })
  }

  async addFiles(files: PrivateFiles): Promise<void> {
    for (const [name, bytes] of Object.entries(files)) {
      await writeNew(join(this.folder, name), bytes)
      this.manifest.files.push({ name, sha256: hash('sha256', bytes) })
    }
  }

  /** Writes the manifest and renames the folder to its final name, durably. */
  async finish(result: Pick<Manifest, 'damaged' | 'blobs'>): Promise<Snapshot> {
    const manifest = { ...this.manifest, ...result }
    const folder = this.folder.replace(/\.partial$/, '')
    await writeNew(join(this.folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
    await fsyncDirectory(this.folder)
    await rename(this.folder, folder)
    await fsyncDirectory(dirname(folder))
    return new Snapshot(folder, manifest)
  }

  async *rows<Each extends Row>(table: string): AsyncGenerator<Each[]> {
    if (!this.manifest.tables.some(({ name }) => name === table)) return
    const file = createReadStream(join(this.folder, fileOf(table)))
    // Its errors are thrown by the iteration below.
    const text = createZstdDecompress({ chunkSize: batchBytes }).setEncoding('utf8')
    startPipeline(file, text, () => undefined)
    let rest = ''
    for await (const chunk of text) {
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      if (lines.length > 0) yield lines.map((line) => JSON.parse(line, decodeBuffer))
    }
  }

  /** The blobs of this snapshot, sorted by digest. */
  blobs(): AsyncGenerator<(BlobRef & Row)[]> {
    return this.rows(blobTable)
  }

  async readFiles(): Promise<PrivateFiles> {
    const files: PrivateFiles = {}
    for (const { name } of this.manifest.files) files[name] = await readFile(join(this.folder, name))
    return files
  }

  /** Records a full verification, for `readBackupTimes`: not of a backup without some contents, nor on a read-only disk. */
  async setVerified(): Promise<void> {
    if (this.manifest.damaged.length > 0) return
    await writeFile(join(this.folder, verifiedName), `${new Date().toISOString()}\n`).catch((error) => {
      if (!['EROFS', 'EACCES'].includes(error.code)) throw error
    })
  }

  /** Compares the files of the snapshot with their digests. @throws {DataDirError} */
  async verify(): Promise<void> {
    const { tables, files } = this.manifest
    const all = [...tables.map(({ name, sha256 }) => ({ name: fileOf(name), sha256 })), ...files]
    for (const { name, sha256 } of all) {
      const file = join(this.folder, name)
      if ((await hashFile(file)) !== sha256) throw new DataDirError(`${file} has been altered.`)
    }
  }
}

/** Bytes of JSON in one batch of rows. */
const batchBytes = 65_536

const fileOf = (table: string) => `${table}.ndjson.zst`

async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

// Base64: by default JSON encodes a Buffer as an array with a number for each byte.
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
