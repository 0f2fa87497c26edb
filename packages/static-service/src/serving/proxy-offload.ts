import type { IncomingHttpHeaders } from 'node:http'
import { blobPathOf, maxSmallBytes } from '../blobs/blob-path.ts'
import type { Selection } from '../rfc9110/byte-ranges.ts'
import type { ContentCoding } from '../rfc9110/content-codings.ts'

/** The proxy that may send stored files itself, and the size from which on it does. */
export interface Offload {
  to: 'nginx' | 'caddy'
  minBytes: number
}

interface OffloadRequest {
  method?: string | undefined
  headers: IncomingHttpHeaders
}

/**
 * Whether the proxy offers to send the body of a response. It must say so itself: another route of the same proxy may
 * have no handler for it. The caller believes trusted proxies only. Requests with conditions, or with ranges that servers
 * read differently, are answered here.
 */
export function canOffload(
  { method, headers }: OffloadRequest,
  selection: Selection,
  { to, coding }: { to: Offload['to']; coding: ContentCoding },
): boolean {
  if (method !== 'GET' || headers['x-static-offload'] !== to) return false
  if (conditions.some((name) => headers[name] !== undefined)) return false
  // Caddy sends encoded bodies without a length.
  if (to === 'caddy' && coding !== 'identity') return false
  if (headers.range === undefined) return true
  return selection !== 'whole' && /^bytes=(?:\d{1,15}-\d{0,15}|-\d{1,15})$/.test(headers.range)
}

/** Whether a representation of this size is a file: smaller ones are in the database, and no proxy can read them there. */
export const hasFile = (size: number) => size > maxSmallBytes

interface OffloadedContent {
  to: Offload['to']
  digest: string
  coding: ContentCoding
  isWhole: boolean
}

/** The headers of a response whose body the proxy sends: with the path of the blob below DATA_DIR, which names a digest. */
export function offloadHeaders(
  headers: Record<string, string>,
  { to, digest, coding, isWhole }: OffloadedContent,
): Record<string, string> {
  const location = { 'x-accel-redirect': `/blobs/${blobPathOf(digest, coding).join('/')}` }
  if (to === 'caddy') return { ...headers, ...location }
  // nginx keeps these fields, so that they would be sent twice: beside those of a second request to us, and beside its
  // own Accept-Ranges for a whole file. It does not know them under other names.
  const renamed = Object.entries(headers).flatMap(([name, value]) => {
    if (name === 'accept-ranges' && isWhole) return []
    return [[keptByNginx.has(name) ? `x-static-${name}` : name, value]]
  })
  return { ...Object.fromEntries(renamed), ...location }
}

const keptByNginx = new Set(['accept-ranges', 'cache-control', 'content-disposition'])

const conditions = [
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
]
