import type { IncomingMessage } from 'node:http'
import { blobPathOf } from '../blobs/blob-path.ts'
import type { Selection } from '../rfc9110/byte-ranges.ts'
import type { ContentCoding } from '../rfc9110/content-codings.ts'

/** The proxy that may send stored files itself, and the minimum size of these files. */
export interface Offload {
  to: 'nginx' | 'caddy'
  minBytes: number
}

/**
 * Whether the proxy offers to send the body of a response. The proxy says so per request (X-Static-Offload): another of
 * its routes may lack the handler. The caller must check that the proxy is trusted. This service answers requests with
 * conditions itself, and those with ranges that servers parse differently.
 */
export function canOffload(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
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

/** Response headers that make the proxy send the body: they add the blob's path below DATA_DIR, named by its digest. */
export function offloadHeaders(
  headers: Record<string, string>,
  content: { to: Offload['to']; digest: string; coding: ContentCoding; isWhole: boolean },
): Record<string, string> {
  const { to, digest, coding, isWhole } = content
  const location = { 'x-accel-redirect': `/blobs/${blobPathOf(digest, coding).join('/')}` }
  if (to === 'caddy') return { ...headers, ...location }
  // nginx keeps these fields and would send them twice: beside those of a second request to this service, and beside
  // its own Accept-Ranges for a whole file. Renamed fields are not kept.
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
