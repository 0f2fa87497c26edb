import { prefixes, readShard } from '../blobs/blob-scan.ts'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { Catalog } from '../catalog/catalog.ts'

export interface Swept {
  /** Contents that nothing referred to: what was being stored or deleted when a process ended. */
  orphans: number
  /** Digests that are referred to and are not there. */
  missing: string[]
}

/**
 * Compares names on the disk with the catalog, reading no content: gives what nothing refers to to the store to
 * collect, and says what is missing. Safe while the service is at work.
 */
export async function sweepOrphans(
  dataDir: string,
  store: BlobStore,
  catalog: Catalog,
): Promise<Swept> {
  const swept: Swept = { orphans: 0, missing: [] }
  for (const prefix of prefixes) {
    const known = new Set(await catalog.digests(prefix))
    const { digests, forms } = await readShard(dataDir, prefix)
    const orphans = [...new Set([...digests, ...forms])].filter((digest) => !known.has(digest))
    store.collect(orphans)
    swept.orphans += orphans.length
    for (const digest of known) {
      if (digests.has(digest)) continue
      // It may have been deleted since the catalog was asked, and another stored.
      const isMissing = !(await store.has(digest)) && (await catalog.isReferenced(digest))
      if (isMissing) swept.missing.push(digest)
    }
  }
  await store.settle()
  return swept
}
