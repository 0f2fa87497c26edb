import type { IncomingMessage } from 'node:http'
import { allowsPath, type Caller } from '@domains-and-files/auth'
import type { AccessRules } from '../sharing/access-rules.ts'
import type { ContentCache } from './content-cache.ts'
import type { Loaded } from './content-stream.ts'
import { asPrivate, type ServedFile } from './served-file.ts'

interface Dependencies {
  cache: ContentCache
  rules: AccessRules
  /** The caller that the credentials of a request identify, if it may read; undefined without credentials, too. */
  findReader: (request: IncomingMessage) => Promise<Caller | undefined>
}

export type ReadableFiles = ReturnType<typeof readableFiles>

/**
 * Read access to files: no request reaches a file or its bytes any other way. For callers without the right to read it,
 * a private file looks absent, in timing as well: its look-up begins only after the reader is authorized.
 */
export function readableFiles({ cache, rules, findReader }: Dependencies) {
  async function findPrivate(request: IncomingMessage, path: string): Promise<ServedFile | undefined> {
    const reader = await findReader(request)
    if (!reader || !allowsPath(reader, path)) return undefined
    const file = await cache.find(path)
    return file && asPrivate(file, privateHeaders)
  }
  return {
    find(request: IncomingMessage, path: string): Loaded<ServedFile> {
      // With replicas, the look-up of the file finds out whether the rules are current.
      if (rules.isExclusive && !rules.isPublic(path)) return findPrivate(request, path)
      const file = cache.find(path)
      if (!(file instanceof Promise)) return file
      return file.then((found) => (rules.isPublic(path) ? found : findPrivate(request, path)))
    },

    /** The public file that a deploy, restore or revert removed from this path within the grace. */
    async findEnded(path: string): Promise<ServedFile | undefined> {
      // The look-up of a removed file does not load newer rules.
      await rules.refresh()
      if (!rules.isPublic(path)) return undefined
      const file = await cache.findEnded(path)
      // The rules may have changed meanwhile.
      return rules.isPublic(path) ? file : undefined
    },
  }
}

export const privateHeaders = {
  'cache-control': 'private, no-cache',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'Authorization',
}
