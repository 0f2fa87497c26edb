import type { Metrics } from '@domains-and-files/http'
import type { Postgres } from '@domains-and-files/persistence'
import type { BlobStore } from './blobs/blob-store.ts'
import type { Catalog } from './catalog/catalog.ts'
import type { Uploads } from './uploads/uploads.ts'

/** Where a service stores its files: catalog and contents, which belong together. */
export interface Storage {
  catalog: Catalog
  store: BlobStore
  /** Those that arrive in several requests. */
  uploads: Uploads
  /** For users and tokens too; undefined: they are in files. */
  database: Postgres | undefined
  registerMetrics: (metrics: Metrics | undefined) => void
  /** Resolves when what an earlier process left behind is tidied up. */
  tidied: Promise<void>
  close: () => Promise<void>
}
