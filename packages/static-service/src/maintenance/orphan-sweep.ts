import { listShards, prefixes, readShard } from '../blobs/disk/blob-scan.ts'
import type { FolderBlobStore } from '../blobs/disk/folder-blob-store.ts'
import type { Catalog } from '../catalog/catalog.ts'

export interface SweepResult {
  /** Contents without a reference: what was being stored or deleted when a process ended. */
  orphans: number
  /** Digests of contents that files refer to and that are missing, unreadable, or of another size. */
  missing: string[]
}

/**
 * Compares the stored contents with the catalog by name and size, reading none of them. Hands contents without a
 * reference to the store to collect, and reports what is missing. Safe while the service runs, and safe to interrupt: the next start continues.
 */
export async function sweepOrphans(
  dataDir: string,
  store: FolderBlobStore,
  catalog: Catalog,
): Promise<SweepResult> {
  const result: SweepResult = { orphans: 0, missing: [] }
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
    for (const [digest, size] of known) {
      if (small.has(digest) || (await store.formSize(digest, 'identity')) === size) continue
      // It may have been deleted since the catalog was read.
      if (await catalog.isReferenced(digest)) result.missing.push(digest)
    }
  }
  await store.settle()
  return result
}
