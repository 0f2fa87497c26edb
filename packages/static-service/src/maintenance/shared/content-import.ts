import { join } from 'node:path'
import { type KeptFile, unreadable } from '@domains-and-files/persistence'
import { maxSmallBytes } from '../../blobs/blob-path.ts'
import { hashFile } from '../../blobs/hashing.ts'
import type { ContentTable } from '../../blobs/s3/content-table.ts'
import type { ObjectUploads } from '../../blobs/s3/object-uploads.ts'
import { openReader } from '../../sqlite/connection.ts'
import { SmallContentReader } from '../small-content-reader.ts'
import { batches } from './content-export.ts'

interface Target {
  table: ContentTable
  uploads: ObjectUploads
}

interface ContentImport {
  /** The folder of the backup. */
  from: string
  /** A SQLite catalog, which says which contents there are. */
  catalog: string
  /** The databases of small contents in the folder. */
  segments: string[]
  /** The contents that are files. */
  contents: Iterable<KeptFile>
  signal: AbortSignal
  onContent: (content: { size: number }) => void
  onDamage: (damage: { sha256: string; fault: string }) => void
}

/**
 * Stores the contents of a backup in PostgreSQL and S3, each compared with its digest. What is stored already is left out,
 * so an interrupted import is resumed by calling this again.
 */
export async function importContents(target: Target, job: ContentImport): Promise<void> {
  await importSmall(target.table, job)
  const { from, contents, signal, onContent, onDamage } = job
  for (const batch of batches(contents)) {
    const stored = await target.table.findStored(batch.map(({ sha256 }) => sha256))
    const upload = async (content: KeptFile) => {
      if (!stored.has(content.sha256)) await uploadOne(target, from, content, onDamage)
      onContent(content)
    }
    const ends = await Promise.allSettled(batch.map(upload))
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed) throw failed.reason
    signal.throwIfAborted()
  }
}

async function uploadOne(
  { table, uploads }: Target,
  from: string,
  { file, size, sha256 }: KeptFile,
  onDamage: ContentImport['onDamage'],
) {
  const path = join(from, file)
  const found = await hashFile(path).catch((error: unknown) => {
    onDamage({ sha256, fault: unreadable(error) })
    return 'unreadable' as const
  })
  if (found === 'unreadable') return
  if (!found) return onDamage({ sha256, fault: 'is missing' })
  if (found.digest !== sha256) return onDamage({ sha256, fault: 'has been altered' })
  const object = await uploads.uploadFile(path, { digest: sha256, size })
  // Discarding does nothing to an object that was committed.
  await table.addObject(sha256, object).finally(object.discard)
}

async function importSmall(table: ContentTable, job: ContentImport) {
  const { from, catalog, segments, signal, onContent, onDamage } = job
  using reader = new SmallContentReader({ folder: from, databases: segments })
  const db = openReader(catalog)
  try {
    const rows = db.prepare<[], { digest: string; size: number }>(
      `select digest, size from blobs where size <= ${maxSmallBytes} order by digest`,
    )
    for (const batch of batches(rows.iterate())) {
      const stored = await table.findStored(batch.map(({ digest }) => digest))
      const contents = []
      for (const row of batch) {
        const fault = stored.has(row.digest) ? undefined : await reader.findFault(row, true)
        if (fault) onDamage({ sha256: row.digest, fault })
        const bytes = stored.has(row.digest) || fault ? undefined : await reader.read(row.digest)
        if (bytes) contents.push({ digest: row.digest, bytes })
        onContent(row)
      }
      if (contents.length > 0) await table.addBytes(contents)
      signal.throwIfAborted()
    }
  } finally {
    db.close()
  }
}
