import type { Auth } from '@domains-and-files/auth'
import type { Logger, Metrics } from '@domains-and-files/http'
import type { BlobStore } from './blobs/blob-store.ts'
import type { Compressor } from './blobs/compressor.ts'
import type { Catalog } from './catalog/catalog.ts'
import type { Config } from './config.ts'
import type { AccessRules } from './sharing/access-rules.ts'
import type { Uploads } from './uploads/uploads.ts'

/** What the service is made of. */
export interface Dependencies {
  config: Config
  auth: Auth
  catalog: Catalog
  store: BlobStore
  uploads: Uploads
  compressor: Compressor
  rules: AccessRules
  metrics: Metrics | undefined
  log: Logger
}
