import { callerOf } from '@domains-and-files/auth'
import type { HeaderDoc } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { changeNotFound, historyGone, invalidPath, versionNotFound } from '../../errors.ts'
import { checkEncoding, hasEncodedSlash, readDirectory } from '../../files/file-path.ts'
import { requireDirectory } from '../folder-limits.ts'

export const TreePath = z.object({
  '*': z.string().meta({
    description: 'a directory with a trailing slash; empty: the whole store',
    examples: ['site/'],
  }),
})

export const treePathErrors = [invalidPath('a tree is a directory, which ends in a slash')]

/**
 * The directory that the URL of a tree names, without its trailing slash; the root is empty.
 * @throws {HttpError} `invalid_path`, `reserved_path`, or `directory_not_found` outside the caller's folders.
 */
export function readTreePath(request: FastifyRequest): string {
  const { url } = request
  const { '*': decoded } = TreePath.parse(request.params)
  return requireDirectory(callerOf(request), readDirectoryUrl(url, decoded))
}

function readDirectoryUrl(url: string, decoded: string): string {
  checkEncoding(url)
  if (hasEncodedSlash(url)) throw invalidPath('its slashes are sent as /, not as %2F', decoded)
  if (decoded === '') return ''
  if (!decoded.endsWith('/'))
    throw invalidPath('a tree is a directory, which ends in a slash', decoded)
  if (decoded.startsWith('/')) throw invalidPath('a segment is empty', decoded)
  return readDirectory(decoded)
}

export const At = z
  .string('must be given once')
  .regex(/^[0-9A-Za-z._+:-]{1,64}$/, 'must be a change id, a version or an RFC 3339 instant')
  .meta({
    description: 'as it was then: a change id (digits alone), a version or an RFC 3339 instant',
    examples: ['4711'],
  })

/**
 * The last change of a moment.
 * @throws {HttpError} `version_not_found`.
 */
export async function changeOf(catalog: Catalog, at: string): Promise<number> {
  if (/^\d+$/.test(at)) return Number(at)
  const isInstant = instant.test(at) && !Number.isNaN(Date.parse(at))
  if (isInstant) return catalog.history.changeAt(new Date(at).toISOString())
  const version = await catalog.findVersion(at)
  if (!version) throw versionNotFound(at)
  return version.changeId
}

// RFC 3339, 5.6.
const instant = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

export const atErrors = [versionNotFound('1.4.0'), changeNotFound(4711), historyGone()]

export const treeTag: Record<string, HeaderDoc> = {
  etag: {
    description: 'Of all names and contents of the tree: the same for each of its forms',
    example: '"c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"',
  },
}
