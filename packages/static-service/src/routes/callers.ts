import { allowsPath, type Caller } from '@domains-and-files/auth'
import { type App, type HttpError, validationFailed } from '@domains-and-files/http'
import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Actor } from '../catalog/tables.ts'
import { directoryNotFound, fileNotFound, invalidPath, reservedPath } from '../errors.ts'
import { readDirectory, readUrlPath, readWrittenPath } from '../files/file-path.ts'

/**
 * Limits the routes that are registered from now on to the folders of their callers, before the hooks of the route, and
 * before validation: what is outside a caller's folders is absent, whatever else is wrong with the request. A route that
 * does not declare `folders` stops the boot.
 */
export function limitToFolders(app: App): void {
  app.addHook('onRoute', (route) => {
    const { access, folders } = route.config ?? {}
    if (!access || access === 'public') return
    if (!folders) throw new Error(`The route ${route.url} must set config.folders`)
    const limit = limits[folders]
    if (!limit) return
    const { schema } = route
    if (schema) schema.errors = [...(schema.errors ?? []), ...limit.errors]
    const check: onRequestHookHandler = (request, _reply, done) => {
      const { folders: own } = request.caller
      try {
        if (own) limit.check(request, own)
        done()
      } catch (error) {
        done(error as Error) // Only errors are thrown above.
      }
    }
    route.onRequest = [check, ...[route.onRequest ?? []].flat()]
  })
}

const pathErrors = [invalidPath('a segment is empty'), reservedPath('tree')]

/** What `folders` of a route limits before its handler runs, with the errors for it. */
const limits: Partial<Record<string, { check: typeof limitPrefix; errors: HttpError[] }>> = {
  path: { check: limitPath, errors: [...pathErrors, fileNotFound('notes/hello.txt')] },
  prefix: { check: limitPrefix, errors: [...pathErrors, directoryNotFound('notes/old')] },
}

/** The caller of a request, as the entry of a change names it. */
export function actorOf(request: FastifyRequest): Actor {
  const { username, token } = request.caller
  return { by: username, token: token?.name ?? null, requestId: request.id }
}

/** The path. @throws {HttpError} `file_not_found` outside the caller's folders. */
export function requirePath(caller: Pick<Caller, 'folders'>, path: string): string {
  if (!allowsPath(caller, path)) throw fileNotFound(path)
  return path
}

/** The directory, without a trailing slash. @throws {HttpError} `directory_not_found` outside the caller's folders. */
export function requireDirectory(caller: Caller, directory: string): string {
  if (!allowsPath(caller, `${directory}/`)) throw directoryNotFound(directory)
  return directory
}

/** `requirePath` of a path as a client has written it. @throws {HttpError} what is wrong with it, too. */
export const requireWrittenPath = (caller: Caller, text: string) => requirePath(caller, readWrittenPath(text))

/** `requireDirectory` of a directory as a client has written it. @throws {HttpError} what is wrong with it, too. */
export const requireWrittenDirectory = (caller: Caller, text: string) => requireDirectory(caller, readDirectory(text))

function limitPath({ url, params }: FastifyRequest, folders: string[]) {
  const { '*': rest = '' } = params as Record<string, string> // As `path` promises.
  requirePath({ folders }, readUrlPath(url, rest))
}

function limitPrefix(request: FastifyRequest, folders: string[]) {
  const query = request.query as Record<string, unknown> // Not yet validated.
  const { prefix = '' } = query
  if (typeof prefix !== 'string') return // Refused by the schema.
  const directory = readDirectory(prefix)
  if (directory !== '' && allowsPath({ folders }, `${directory}/`)) return
  const [only] = folders
  if (folders.length > 1) {
    const message = `must be inside one of your folders: ${folders.join(', ')}`
    throw validationFailed([{ path: '/query/prefix', message }])
  }
  if (only === undefined || directory !== '') throw directoryNotFound(directory)
  query.prefix = only
}
