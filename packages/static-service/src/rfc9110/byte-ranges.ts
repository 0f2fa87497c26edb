import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { allowsParts, type Validators } from './conditional-requests.ts'

/** Bytes from `start` up to but excluding `end`. */
export interface Slice {
  start: number
  end: number
}

/** Literal bytes, or a slice of the file. */
export type Piece = Buffer | Slice

/** A request with more ranges is answered with the whole file (RFC 9110, 17.15). */
const maxRanges = 100

export type Selection = 'whole' | 'unsatisfiable' | Slice[]

/**
 * The ranges that a request selects (RFC 9110, 14.1.2 and 14.2); `validators` are those of the whole file of `size` bytes.
 * `whole`: no Range, or one to ignore: malformed, another unit, too many ranges, or more bytes than the file has.
 * `unsatisfiable`: well-formed, but no byte of it exists. Slices keep the requested order.
 */
export function selectRanges(
  { method, headers }: { method?: string | undefined; headers: IncomingHttpHeaders },
  { validators, size }: { validators: Validators; size: number },
): Selection {
  if (headers.range === undefined || method !== 'GET') return 'whole'
  if (!allowsParts(headers['if-range']?.toString(), validators)) return 'whole'
  const specs = readSpecs(headers.range)
  if (!specs || specs.length > maxRanges) return 'whole'
  const slices = specs.flatMap((spec) => sliceOf(spec, size) ?? [])
  if (slices.length === 0) return 'unsatisfiable'
  const wanted = slices.reduce((sum, { start, end }) => sum + end - start, 0)
  // `bytes=-1` of an empty file is satisfiable with zero bytes, which Content-Range cannot express.
  return wanted > size || wanted === 0 ? 'whole' : slices
}

// `Content-Range` of a slice (RFC 9110, 14.4).
const contentRange = ({ start, end }: Slice, size: number) => `bytes ${start}-${end - 1}/${size}`

/** The body of a 206: one slice as it is, several as multipart/byteranges (RFC 9110, 14.6 and 15.3.7). */
export function frame(slices: Slice[], file: { contentType: string; size: number }) {
  const [only] = slices
  if (only && slices.length === 1) {
    const headers = { 'content-type': file.contentType, 'content-range': contentRange(only, file.size) }
    return { headers, pieces: [only], length: only.end - only.start }
  }
  const boundary = randomUUID()
  const pieces: Piece[] = slices.flatMap((slice, index) => [
    Buffer.from(
      `${index === 0 ? '' : '\r\n'}--${boundary}\r\ncontent-type: ${file.contentType}\r\n` +
        `content-range: ${contentRange(slice, file.size)}\r\n\r\n`,
      'latin1',
    ),
    slice,
  ])
  pieces.push(Buffer.from(`\r\n--${boundary}--\r\n`))
  const lengthOf = (piece: Piece) => (Buffer.isBuffer(piece) ? piece.length : piece.end - piece.start)
  const length = pieces.reduce((sum, piece) => sum + lengthOf(piece), 0)
  return { headers: { 'content-type': `multipart/byteranges; boundary=${boundary}` }, pieces, length }
}

type Spec = Record<'first' | 'last', string>

// Undefined unless every element is well-formed (RFC 9110, 14.1.1). Elements of a list may be empty (5.6.1.2), the list
// may not. Units are case-insensitive (14.1).
function readSpecs(field: string): Spec[] | undefined {
  const set = /^bytes=(.*)$/i.exec(field)?.[1]
  if (set === undefined) return undefined
  const specs: Spec[] = []
  for (const [index, element] of set.split(',').entries()) {
    if (/^[\t ]*$/.test(element)) continue
    // White space is permitted around commas, not after the equals sign.
    const form = index === 0 ? /^(\d*)-(\d*)[\t ]*$/ : /^[\t ]*(\d*)-(\d*)[\t ]*$/
    const [, first, last] = form.exec(element) ?? []
    if (first === undefined || last === undefined || first + last === '') return undefined
    if (first !== '' && last !== '' && BigInt(last) < BigInt(first)) return undefined
    specs.push({ first, last })
  }
  return specs.length > 0 ? specs : undefined
}

// RFC 9110, 14.1.2: a last position past the end means the end; a suffix longer than the file means the whole file.
function sliceOf({ first, last }: Spec, size: number): Slice | undefined {
  if (first === '') {
    const length = Math.min(Number(last), size)
    return Number(last) === 0 ? undefined : { start: size - length, end: size }
  }
  const start = Number(first)
  if (start >= size) return undefined
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) }
}
