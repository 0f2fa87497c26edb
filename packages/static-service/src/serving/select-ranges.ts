import type { IncomingHttpHeaders } from 'node:http'
import { readRanges, type Slice } from '../rfc9110/byte-ranges.ts'
import { allowsParts } from '../rfc9110/conditional-requests.ts'
import { type ServedFile, validatorsOf } from './served-file.ts'

/** The ranges of a file that a request selects. They are ranges of the identity form; only GET has them (RFC 9110, 14.2). */
export function selectRanges(
  { method, headers }: { method: string; headers: IncomingHttpHeaders },
  file: ServedFile,
  now: number,
): 'whole' | 'unsatisfiable' | Slice[] {
  if (method !== 'GET' || headers.range === undefined) return 'whole'
  const ifRange = headers['if-range']?.toString()
  return allowsParts(ifRange, validatorsOf(file, 'identity', now))
    ? readRanges(headers.range, file.row.size)
    : 'whole'
}
