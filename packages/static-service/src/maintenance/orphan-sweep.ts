import type { FolderBlobStore } from '../blobs/disk/folder-blob-store.ts'
import type { Catalog } from '../catalog/catalog.ts'

export interface SweepResult {
  /** Unreferenced blobs, which a process was storing or deleting when it ended. */
  orphans: number
  /** Digests of blobs that files refer to and that are missing, unreadable, or of another size. */
  missing: string[]
}

/**
 * Compares stored blobs with the catalog by name and size, without reading them. Has the store collect unreferenced
 * blobs, and reports missing ones. Safe while the service runs, and safe to interrupt: the next start continues.
 */
export async function sweepOrphans(store: FolderBlobStore, catalog: Catalog): Promise<SweepResult> {
  const result: SweepResult = { orphans: 0, missing: [] }
  for (const prefix of new Set([
    ...(await catalog.reads.contentPrefixes()),
    ...(await store.prefixes()),
  ])) {
    const known = await catalog.reads.contents(prefix)
    const referenced = new Set(known.map(({ digest }) => digest))
    const stored = new Set((await store.list(prefix)).flatMap(({ digest }) => digest ?? []))
    const orphans = [...stored].filter((digest) => !referenced.has(digest))
    if (orphans.length > 0) await store.erase(orphans)
    result.orphans += orphans.length
    for (const { digest, size } of known) {
      if ((await store.formSize(digest, 'identity')) === size) continue
      // It may have been deleted since the catalog was read.
      if (await catalog.isReferenced(digest)) result.missing.push(digest)
    }
  }
  await store.settle()
  return result
}
