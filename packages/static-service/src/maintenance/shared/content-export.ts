import { createHash } from 'node:crypto'
import { linkSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { HttpError } from '@domains-and-files/http'
import {
  fsyncDirectory,
  type KeptFile,
  type Transaction,
  unreadable,
} from '@domains-and-files/persistence'
import { maxSmallBytes } from '../../blobs/blob-path.ts'
import { blobDatabaseName, openBlobDatabase } from '../../blobs/disk/blob-database.ts'
import { prepareStore } from '../../blobs/disk/blob-statements.ts'
import type { Bucket } from '../../blobs/s3/bucket.ts'
import { ObjectReader, type StoredObject } from '../../blobs/s3/object-reader.ts'
import { writeWhole } from '../../blobs/staged-blob.ts'
import { readAll } from './catalog-export.ts'

interface ContentExport {
  snapshot: Transaction
  /** The folder of the backup. */
  to: string
  /** The folder of an earlier backup, whose files are linked. */
  earlier: string | undefined
  contents: Iterable<KeptFile>
  signal: AbortSignal
  onContent: (content: { size: number }) => void
  onDamage: (damage: { sha256: string; fault: string }) => void
}

/**
 * Downloads the contents of a snapshot as files, durably, each compared with its digest. One that is missing or damaged is
 * reported.
 */
export async function exportObjects(bucket: Bucket, job: ContentExport): Promise<void> {
  const { snapshot, to, earlier, contents, signal, onContent } = job
  const folders = new Set<string>()
  for (const batch of batches(contents)) {
    const lacking: KeptFile[] = []
    for (const content of batch) {
      const folder = dirname(join(to, content.file))
      if (!folders.has(folder)) await mkdir(folder, { recursive: true, mode: 0o700 })
      folders.add(folder)
      if (earlier !== undefined && tryLink(join(earlier, content.file), join(to, content.file))) {
        onContent(content)
      } else {
        lacking.push(content)
      }
    }
    const objects = await findObjects(snapshot, lacking)
    const download = async (content: KeptFile) => {
      await downloadOne(bucket, { content, object: objects.get(content.sha256) }, job)
      onContent(content)
    }
    // All have ended when it throws.
    const ends = await Promise.allSettled(lacking.map(download))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
    signal.throwIfAborted()
  }
  for (const folder of folders) {
    await fsyncDirectory(folder)
    await fsyncDirectory(dirname(folder))
  }
}

async function downloadOne(
  bucket: Bucket,
  { content, object }: { content: KeptFile; object: StoredObject | undefined },
  { to, signal, onDamage }: ContentExport,
) {
  const { sha256 } = content
  if (!object) return onDamage({ sha256, fault: 'is missing' })
  const file = join(to, content.file)
  await using reader = new ObjectReader(bucket, object, () => undefined)
  await using handle = await open(file, 'wx', 0o600)
  const digest = createHash('sha256')
  reader.expect(0, object.size)
  for (let at = 0; at < object.size; at += chunkBytes) {
    signal.throwIfAborted()
    const chunk = await reader.read(at, chunkBytes).catch((error: unknown) => {
      if (error instanceof HttpError) throw error // The store does not answer.
      onDamage({ sha256, fault: unreadable(error) })
    })
    if (!chunk) return rm(file)
    digest.update(chunk)
    await writeWhole(handle, chunk)
  }
  await handle.sync()
  if (digest.digest('hex') !== sha256) onDamage({ sha256, fault: 'has been altered' })
}

/** Writes the small contents of a snapshot into a content database in a folder. */
export async function exportSmallContents(snapshot: Transaction, to: string) {
  const db = openBlobDatabase(join(to, blobDatabaseName))
  try {
    db.pragma('synchronous = off')
    const store = prepareStore(db)
    const rows = readAll<{ digest: string; bytes: Buffer }>(
      snapshot,
      `select digest, bytes from static_service.contents
       where coding = 0 and size <= ${maxSmallBytes} and bytes is not null`,
    )
    const storeAll = db.transaction((batch: { digest: string; bytes: Buffer }[]) => {
      for (const { digest, bytes } of batch) store(digest, 'identity', bytes)
    })
    for await (const batch of rows) storeAll(batch)
  } finally {
    db.close()
  }
  return { folder: to, databases: [blobDatabaseName] }
}

interface ObjectRow {
  digest: string
  size: number
  object_key: string
  etag: string | null
}

async function findObjects(snapshot: Transaction, contents: KeptFile[]) {
  const rows = await snapshot.query<ObjectRow>(
    `select digest, size, object_key, etag from static_service.contents
     where digest = any($1) and coding = 0 and object_key is not null`,
    [contents.map(({ sha256 }) => sha256)],
  )
  return new Map(
    rows.map(({ digest, size, object_key, etag }): [string, StoredObject] => [
      digest,
      { key: object_key, size, etag: etag ?? undefined },
    ]),
  )
}

/** Pieces of a list; those of one piece are transferred at once. */
export function* batches<Item>(items: Iterable<Item>): Generator<Item[]> {
  let batch: Item[] = []
  for (const item of items) {
    batch.push(item)
    if (batch.length < batchSize) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

const batchSize = 16
const chunkBytes = 1_048_576

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch {
    return false
  }
}
