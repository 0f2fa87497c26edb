import { type Metrics, registerCounters, registerGauges, registerStorageGauges } from '@domains-and-files/http'
import type { Bucket, CallCounts } from './blobs/s3/bucket.ts'
import type { GarbageSweep } from './blobs/s3/garbage-sweep.ts'
import type { Dependencies } from './dependencies.ts'
import type { LruLoader } from './serving/content-stream.ts'

// Gauges and counters are read on each scrape. No label contains a path or a username.

type Kept = Pick<LruLoader<object>, 'counts' | 'bytes'>

/** `memory`: the caches by their label. */
export function registerMetrics(
  { config, metrics, auth, catalog, store, compressor }: Dependencies,
  memory: Record<string, Kept>,
) {
  const totals = () => catalog.status().totals
  const read = (figure: (kept: Kept) => number) => () =>
    Object.fromEntries(Object.entries(memory).map(([name, kept]) => [name, figure(kept)]))
  registerGauges(metrics, {
    static_files: ['Stored files', () => totals()?.totalFiles ?? Number.NaN],
    static_file_bytes: ['Bytes of all files', () => totals()?.totalSize ?? Number.NaN],
    static_stored_bytes: ['Bytes of the distinct contents', () => totals()?.storedSize ?? Number.NaN],
    static_uploads_in_flight: ['Uploads being received', () => store.memory.arriving.size],
    static_changes_waiting: ['Changes queued for a commit', () => catalog.waitingChanges],
    static_questions_waiting: ['Queries not yet answered by the read worker', () => catalog.waitingQueries],
    static_compressions_waiting: ['Files queued for compression', () => compressor.waiting],
    auth_hashes_waiting: ['Password hashes queued', () => auth.hashes.pendingCount],
    static_memory_bytes: ['Estimated cache size, entry overhead included', read(({ bytes }) => bytes), 'kept'],
  })
  registerStorageGauges(metrics, config)
  registerCounters(metrics, {
    static_memory_hits_total: ['Lookups answered from memory', read(({ counts }) => counts.hit), 'kept'],
    static_memory_misses_total: ['Lookups not answered from memory', read(({ counts }) => counts.miss), 'kept'],
  })
}

/** Calls to the object store by operation, and the objects to be deleted. */
export function registerS3Metrics(
  metrics: Metrics | undefined,
  { counts, sweep }: Pick<Bucket, 'counts'> & { sweep: GarbageSweep },
) {
  const read = (figure: keyof CallCounts) => () =>
    Object.fromEntries(Object.entries(counts).map(([name, calls]) => [name, calls[figure]]))
  registerCounters(metrics, {
    static_s3_calls_total: ['Calls to the object store', read('calls'), 'operation'],
    static_s3_failures_total: ['Calls to the object store that failed', read('failures'), 'operation'],
    static_s3_seconds_total: ['Time of calls to the object store', read('seconds'), 'operation'],
    static_s3_objects_deleted_total: ['Objects deleted by this process', () => sweep.deleted],
  })
  const waiting = 'Objects to be deleted, those of uploads without a commit among them'
  registerGauges(metrics, { static_s3_objects_waiting: [waiting, () => sweep.count()] })
}
