import { callerOf } from '@domains-and-files/auth'
import type { HeaderDoc } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { invalidPath } from '../../errors.ts'
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

export const treeTag: Record<string, HeaderDoc> = {
  etag: {
    description: 'Of all names and contents of the tree: the same for each of its forms',
    example: '"c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"',
  },
}
