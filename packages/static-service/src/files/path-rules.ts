// The rules of stored paths without HTTP errors: the worker threads of the catalog use them too.

const maxPathBytes = 1024
const maxSegmentBytes = 255
const maxSegments = 32

// The API's own names under /api/files/.
const reserved = new Set(['categories', 'tree', 'upload'])

/** Why a text is not a stored path. */
export type PathFault =
  | { code: 'invalid_path'; reason: string }
  | { code: 'reserved_path'; segment: string }

/** What is wrong with this NFC-normalised path, if anything. */
export function findPathFault(path: string): PathFault | undefined {
  const segments = path.split('/')
  const [first = ''] = segments
  const reason = wholeFault(path, segments.length) ?? firstOf(segments, segmentFault)
  if (reason) return { code: 'invalid_path', reason }
  return reserved.has(first) ? { code: 'reserved_path', segment: first } : undefined
}

function wholeFault(path: string, segments: number): string | undefined {
  if (!path.isWellFormed()) return 'it is not valid Unicode'
  if (path === '') return 'it is empty'
  if (path.endsWith('/')) return 'it ends with a slash'
  if (Buffer.byteLength(path) > maxPathBytes) return `it has more than ${maxPathBytes} bytes`
  if (forbidden.test(path)) {
    return 'it contains a backslash, a control character or a bidirectional override'
  }
  return segments > maxSegments ? `it has more than ${maxSegments} segments` : undefined
}

function segmentFault(segment: string): string | undefined {
  if (segment === '') return 'a segment is empty'
  if (segment === '.' || segment === '..') return 'a segment is . or ..'
  return Buffer.byteLength(segment) > maxSegmentBytes
    ? `a segment has more than ${maxSegmentBytes} bytes`
    : undefined
}

function firstOf(segments: string[], find: (segment: string) => string | undefined) {
  for (const segment of segments) {
    const fault = find(segment)
    if (fault) return fault
  }
  return undefined
}

// Backslash, C0 and C1 controls, DEL, and bidirectional embeddings, overrides and isolates (UAX 9).
const forbidden = /[\\\p{Cc}\u202a-\u202e\u2066-\u2069]/u
