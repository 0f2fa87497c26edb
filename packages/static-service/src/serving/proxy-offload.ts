import type { FastifyRequest } from 'fastify'
import { blobPathOf, type ContentCoding } from '../blobs/blob-path.ts'
import type { Slice } from '../rfc9110/byte-ranges.ts'

/** A proxy that sends stored bytes itself when it is told which, and the size from which on that is worth its while. */
export interface Offload {
  to: 'nginx' | 'caddy'
  leastBytes: number
}

/**
 * Whether an answer's body can be left to the proxy, which is only asked for what nothing is left to judge about: no
 * condition, and either no range or one that everybody reads alike. All else is answered here, as without a proxy.
 */
export function canOffload(
  request: FastifyRequest,
  ranges: 'whole' | Slice[],
  { to, form }: { to: Offload['to']; form: ContentCoding },
): boolean {
  const { method, headers } = request
  if (method !== 'GET' || headers[refusal] === 'off' || !hasComeByProxy(request)) return false
  if (conditions.some((name) => headers[name] !== undefined)) return false
  // Of an encoded body Caddy does not tell the length.
  if (to === 'caddy' && form !== 'identity') return false
  if (headers.range === undefined) return true
  return ranges !== 'whole' && /^bytes=(?:\d{1,15}-\d{0,15}|-\d{1,15})$/.test(headers.range)
}

/**
 * The headers of an answer whose body the proxy sends: with the place of the content below the data folder, which names
 * a digest and nothing secret.
 */
export function handOver(
  headers: Record<string, string>,
  {
    to,
    digest,
    form,
    isWhole,
  }: { to: Offload['to']; digest: string; form: ContentCoding; isWhole: boolean },
): Record<string, string> {
  const place = { 'x-accel-redirect': `/blobs/${blobPathOf(digest, form).join('/')}` }
  if (to === 'caddy') return { ...headers, ...place }
  // nginx keeps these by itself and would send them twice: those of a second answer beside them, when it had to ask
  // again, and to a whole file an Accept-Ranges of its own. Under other names it knows nothing of them.
  const renamed = Object.entries(headers).flatMap(([name, value]) => {
    if (name === 'accept-ranges' && isWhole) return []
    return [[keptByNginx.has(name) ? `x-static-${name}` : name, value]]
  })
  return { ...Object.fromEntries(renamed), ...place }
}

const keptByNginx = new Set(['accept-ranges', 'cache-control', 'content-disposition'])

// By this the proxy, which found nothing at the place that it was told, asks for the bytes themselves: between our
// answer and its opening of the file that file may have been deleted or replaced.
const refusal = 'x-static-offload'

const conditions = [
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
]

// Who comes directly would get no body. TRUST_PROXY says who is a proxy; a proxy says for whom it asks.
const hasComeByProxy = ({ ips }: FastifyRequest) => ips !== undefined && ips.length > 1
