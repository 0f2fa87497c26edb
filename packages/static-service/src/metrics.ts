import type { HashQueue } from '@domains-and-files/auth'
import {
  type Registry,
  registerCounter,
  registerDiskGauges,
  registerGauge,
} from '@domains-and-files/http'
import type { BlobStore } from './blobs/blob-store.ts'
import type { Compressor } from './blobs/compressor.ts'
import type { Catalog } from './catalog/catalog.ts'
import type { Config } from './config.ts'
import type { LruLoader } from './serving/lru-loader.ts'

// What an operator wants to know of this service, read when it is asked for. No label names a file or a person.

interface Parts {
  config: Config
  metrics: Registry
  catalog: Catalog
  store: BlobStore
  compressor: Compressor
  hashes: HashQueue
}

export function registerMetrics({ config, metrics, catalog, store, compressor, hashes }: Parts) {
  const figures = {
    static_files: ['Files that are stored', () => catalog.check().totals.totalFiles],
    static_file_bytes: ['Bytes of all files', () => catalog.check().totals.totalSize],
    static_stored_bytes: [
      'Bytes of the distinct contents',
      () => catalog.check().totals.storedSize,
    ],
    static_contents_in_use: ['Contents that are being read or added', () => store.busy],
    static_uploads_in_flight: ['Files that are arriving', () => store.countDrafts()],
    static_changes_waiting: ['Changes that wait for their commit', () => catalog.waiting.changes],
    static_questions_waiting: ['Listings and the like that wait', () => catalog.waiting.questions],
    static_compressions_waiting: ['Files that wait to be compressed', () => compressor.waiting],
    auth_hashes_waiting: [
      'Logins that wait for their password to be hashed',
      () => hashes.pendingCount,
    ],
  } as const
  for (const [name, [help, read]] of Object.entries(figures))
    registerGauge(metrics, { name, help }, read)
  registerDiskGauges(metrics, config.dataDir)
}

type Kept = Pick<LruLoader<object>, 'counts' | 'bytes'>

/** What memory answers instead of the catalog and the disk, by what is kept there. */
export function registerCacheMetrics(metrics: Registry, memory: Record<string, Kept>) {
  const read = (figure: (kept: Kept) => number) => () =>
    Object.fromEntries(Object.entries(memory).map(([name, kept]) => [name, figure(kept)]))
  const label = 'kept'
  registerCounter(
    metrics,
    { name: 'static_memory_hits_total', help: 'Look-ups that memory answered', label },
    read(({ counts }) => counts.hit),
  )
  registerCounter(
    metrics,
    { name: 'static_memory_misses_total', help: 'Look-ups that it could not answer', label },
    read(({ counts }) => counts.miss),
  )
  registerGauge(
    metrics,
    {
      name: 'static_memory_bytes',
      help: 'Memory that is taken, reckoned with its overhead',
      label,
    },
    read(({ bytes }) => bytes),
  )
}
