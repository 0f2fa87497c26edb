import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { digestMismatch } from '../errors.ts'

/**
 * SHA-256 check of `Content-Digest` and `Repr-Digest` (RFC 9530), also in a trailer that `Trailer` announces; other
 * algorithms are ignored. Without a content coding both name the same bytes.
 * @throws {HttpError} `digest_mismatch` when a field is malformed.
 */
export function checkDigests(request: IncomingMessage) {
  const expected = digestsIn(request.headers)
  const hash = expected.length > 0 || request.headers.trailer !== undefined ? createHash('sha256') : undefined
  return {
    update: (chunk: Buffer) => void hash?.update(chunk),
    /** @throws {HttpError} `digest_mismatch`. */
    end: () => {
      const actual = hash?.digest('base64')
      if (hash) expected.push(...digestsIn(request.trailers))
      for (const { field, digest } of expected) if (digest !== actual) throw digestMismatch(field)
    },
  }
}

const digestsIn = (fields: NodeJS.Dict<string | string[]>) =>
  ['Content-Digest', 'Repr-Digest'].flatMap((field) => {
    const value = fields[field.toLowerCase()]
    const digest = value === undefined ? undefined : readSha256(field, value.toString())
    return digest === undefined ? [] : [{ field, digest }]
  })

// A dictionary of byte sequences (RFC 9651, 3.2 and 3.3.5): of a repeated key the last value counts; parameters, of which
// RFC 9530 defines none, are ignored.
function readSha256(field: string, value: string): string | undefined {
  const members = value.split(',').map((member) => /^([a-z*][\w.*-]*)=:([\w+/]*={0,2}):(?:;.*)?$/.exec(member.trim()))
  const malformed = () => digestMismatch(`${field}, which is not sha-256=:<base64>:`)
  if (members.some((member) => member === null)) throw malformed()
  const digest = members.findLast((member) => member?.[1] === 'sha-256')?.[2]
  const bytes = digest === undefined ? undefined : Buffer.from(digest, 'base64')
  if (bytes && bytes.length !== 32) throw malformed()
  return bytes?.toString('base64')
}
