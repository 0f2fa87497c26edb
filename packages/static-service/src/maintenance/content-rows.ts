import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { RowContents } from '@domains-and-files/persistence'
import { maxSmallBytes } from '../blobs/blob-path.ts'
import { blobDatabaseName, openBlobDatabase } from '../blobs/disk/blob-database.ts'
import { openReader } from '../sqlite/connection.ts'
import { RowCopy } from './row-copy.ts'
import { SmallContentReader } from './small-content-reader.ts'

/** Small contents in backups. Compressed forms are left out; the service makes them again on demand. */
export const contentRows: RowContents = {
  database: blobDatabaseName,
  count: countRows,
  add: addRows,
  verify: verifyRows,
}

function countRows(catalog: string) {
  const db = openReader(catalog)
  try {
    const select = db.prepare<[], { count: number; bytes: number }>(
      `select count(*) count, coalesce(sum(size), 0) bytes from blobs where size <= ${maxSmallBytes}`,
    )
    return select.get() ?? { count: 0, bytes: 0 }
  } finally {
    db.close()
  }
}

async function addRows({ catalog, to, from, have, signal, onContent }: Adding): Promise<number> {
  const target = openBlobDatabase(to)
  let added = 0
  try {
    // Flushed once, at the end; a failure removes the whole file.
    target.pragma('synchronous = OFF')
    target.pragma('journal_mode = off')
    using copy = new RowCopy({ catalog, target, to, have })
    copy.countPresent(onContent)
    for (const name of from.databases) {
      for (const sizes of copy.copyRows(join(from.folder, name))) {
        for (const size of sizes) onContent({ size })
        added += sizes.length
        await nextIteration()
        signal.throwIfAborted()
      }
    }
    added += await copy.copyRest(from, onContent)
  } catch (error) {
    target.close()
    throw error
  }
  target.pragma('journal_mode = delete')
  target.close()
  await using handle = await open(to, 'r+')
  await handle.chmod(0o600)
  await handle.sync()
  return added
}

async function verifyRows({ catalog, from, hash, signal, onContent, onDamage }: Verifying) {
  using reader = new SmallContentReader(from)
  const db = openReader(catalog)
  try {
    const select = db.prepare<[], { digest: string; size: number }>(
      `select digest, size from blobs where size <= ${maxSmallBytes}`,
    )
    let count = 0
    for (const { digest, size } of select.iterate()) {
      const fault = await reader.findFault({ digest, size }, hash)
      if (fault) onDamage({ sha256: digest, fault })
      onContent({ size })
      count += 1
      if (count % 256 !== 0) continue
      await nextIteration()
      signal.throwIfAborted()
    }
  } finally {
    db.close()
  }
}

type Adding = Parameters<RowContents['add']>[0]
type Verifying = Parameters<RowContents['verify']>[0]
