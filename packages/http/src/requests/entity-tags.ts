import type { IncomingMessage } from 'node:http'
import { HttpError } from '../http-error.ts'

/** The tags that a condition lists: any (`*`), or these opaque tags, quotes included. */
export type TagList = '*' | readonly string[]

/** Reads `If-Match` for strong comparison (RFC 9110, 13.1.1): weak tags never match and are left out. */
export const readIfMatch = (field: string): TagList => readTags(field, 'strong')

/** Reads `If-None-Match` for weak comparison (RFC 9110, 13.1.2): `W/` is dropped. */
export const readIfNoneMatch = (field: string): TagList => readTags(field, 'weak')

/** Whether the list names this strong tag. For `*` always true: the caller knows whether a representation exists. */
export const includesTag = (list: TagList, etag: string) => list === '*' || list.includes(etag)

/** Whether a GET of a resource without dates is a 304 (RFC 9110, 13.2.2). @throws {HttpError} `precondition_failed`. */
export function isNotModified({ headers }: Pick<IncomingMessage, 'headers'>, etag: string): boolean {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch === undefined || includesTag(readIfMatch(ifMatch), etag)) return isCurrent(ifNoneMatch, etag)
  throw new HttpError(412, 'precondition_failed', 'This has changed since you read it: read it again')
}

/** Whether a cached response with this tag is still current by `If-None-Match`. */
export const isCurrent = (ifNoneMatch: string | undefined, etag: string) =>
  ifNoneMatch !== undefined && (ifNoneMatch === etag || includesTag(readIfNoneMatch(ifNoneMatch), etag))

// RFC 9110, 8.8.3: a tag may contain commas, so the list cannot be split at commas. An element that is not an entity
// tag matches nothing.
const element = /(?:^|,)[\t ]*(W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*(?=,|$)/g

function readTags(field: string, comparison: 'strong' | 'weak'): TagList {
  if (field.trim() === '*') return '*'
  return [...field.matchAll(element)].flatMap(([, weak, tag]) =>
    tag === undefined || (weak && comparison === 'strong') ? [] : [tag],
  )
}
