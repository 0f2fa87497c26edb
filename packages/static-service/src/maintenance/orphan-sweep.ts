import { maxSmallBytes } from '../blobs/blob-path.ts'
import { listShards, prefixes, readShard } from '../blobs/disk/blob-scan.ts'
import type { FolderBlobStore } from '../blobs/disk/folder-blob-store.ts'
import type { Catalog } from '../catalog/catalog.ts'

export interface SweepResult {
  /** Contents without a reference: what was being stored or deleted when a process ended. */
  orphans: number
  /** Small contents that were moved from files, where an earlier version stored them, to the content database. */
  moved: number
  /** Digests of contents that files refer to and that are missing, unreadable, or of another size. */
  missing: string[]
}

/**
 * Compares the stored contents with the catalog by name and size, reading none of them. Hands contents without a
 * reference to the store to collect, moves small contents from files to the content database, and reports what is
 * missing. Safe while the service runs, and safe to interrupt: the next start continues.
 */
export async function sweepOrphans(
  dataDir: string,
  store: FolderBlobStore,
  catalog: Catalog,
): Promise<SweepResult> {
  const result: SweepResult = { orphans: 0, moved: 0, missing: [] }
  const used = new Set([
    ...(await catalog.contentPrefixes()),
    ...(await store.small.prefixes()),
    ...(await listShards(dataDir)),
  ])
  for (const prefix of prefixes.filter((each) => used.has(each))) {
    const known = new Map(
      (await catalog.contents(prefix)).map(({ digest, size }) => [digest, size] as const),
    )
    const { digests, forms } = await readShard(dataDir, prefix)
    const small = new Set(await store.small.digests(prefix))
    const orphans = [...new Set([...digests, ...forms, ...small])].filter(
      (each) => !known.has(each),
    )
    store.collect(orphans)
    result.orphans += orphans.length
    const isOld = (digest: string) => (known.get(digest) ?? Infinity) <= maxSmallBytes
    const { moved, failed } = await moveAll([...digests, ...forms].filter(isOld), store)
    result.moved += moved
    result.missing.push(...failed)
    for (const [digest, size] of known) {
      if (small.has(digest) || (await store.formSize(digest, 'identity')) === size) continue
      // It may have been deleted since the catalog was read.
      if (await catalog.isReferenced(digest)) result.missing.push(digest)
    }
  }
  await store.settle()
  store.endMove()
  return result
}

// Several at once share a commit. One that cannot be read is left where it is.
async function moveAll(digests: string[], store: FolderBlobStore) {
  const failed: string[] = []
  const distinct = [...new Set(digests)]
  for (let at = 0; at < distinct.length; at += 64) {
    const move = async (digest: string) => {
      const isMoved = await store.moveToDatabase(digest).catch(() => false)
      if (!isMoved) failed.push(digest)
    }
    await Promise.all(distinct.slice(at, at + 64).map(move))
  }
  return { moved: distinct.length - failed.length, failed }
}
