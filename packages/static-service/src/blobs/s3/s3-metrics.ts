import { type Metrics, registerCounter, registerGauge } from '@domains-and-files/http'
import type { Bucket } from './bucket.ts'
import type { S3BlobStore } from './s3-blob-store.ts'

/** Calls to the object store by operation, and the objects that wait for their deletion. */
export function registerS3Metrics(
  metrics: Metrics | undefined,
  { bucket, store }: { bucket: Bucket; store: S3BlobStore },
) {
  const label = 'operation'
  registerCounter(
    metrics,
    { name: 'static_s3_calls_total', help: 'Calls to the object store', label },
    () => bucket.counts.by('calls'),
  )
  registerCounter(
    metrics,
    { name: 'static_s3_failures_total', help: 'Calls to the object store that failed', label },
    () => bucket.counts.by('failures'),
  )
  registerCounter(
    metrics,
    { name: 'static_s3_seconds_total', help: 'Time of calls to the object store', label },
    () => bucket.counts.by('seconds'),
  )
  registerGauge(
    metrics,
    {
      name: 'static_s3_objects_waiting',
      help: 'Objects that wait for their deletion (garbage), and uploads without a commit (intents)',
      label: 'kind',
    },
    () => store.sweep.count(),
  )
  registerCounter(
    metrics,
    { name: 'static_s3_objects_deleted_total', help: 'Objects deleted by this process' },
    () => store.sweep.deleted,
  )
}
