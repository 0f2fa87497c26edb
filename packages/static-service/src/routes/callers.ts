import { allowsPath, type Caller, callerOf } from '@domains-and-files/auth'
import { type App, validationFailed } from '@domains-and-files/http'
import type { FastifyRequest } from 'fastify'
import type { Actor } from '../catalog/changes/change-entry.ts'
import { directoryNotFound, fileNotFound, invalidPath, reservedPath } from '../errors.ts'
import { decodeUrl, readDirectory, readUrlPath, readWrittenPath } from '../files/file-path.ts'

/**
 * Limits the routes that are registered from now on to the folders of their callers, before the hooks of the route, and
 * before validation: what is outside a caller's folders is absent, whatever else is wrong with the request. A URL that
 * cannot be decoded is refused. A route that does not declare `folders` stops the boot.
 */
export function limitToFolders(app: App): void {
  const limited = new Set<string>()
  app.addHook('onRoute', ({ url, config, schema }) => {
    // The refusals of other methods are public, and at the URLs of earlier routes, too.
    if (!config?.access || config.access === 'public') return
    if (!config.folders) throw new Error(`The route ${url} must set config.folders`)
    limited.add(url)
    const namesPath = config.folders === 'path' || config.folders === 'prefix'
    if (schema && namesPath) schema.errors = [...(schema.errors ?? []), ...pathErrors]
  })
  app.addHook('onRequest', (request, _reply, done) => {
    const { url = '', config } = request.routeOptions
    const isOpen = config.access === undefined || config.access === 'public'
    if (request.is404 || isOpen || !limited.has(url)) return done()
    const { folders } = callerOf(request)
    try {
      decodeUrl(request.url) // The framework leaves a malformed query parameter undecoded.
      if (folders) checkRequest(request, folders)
      done()
    } catch (error) {
      done(error as Error) // Only errors are thrown above.
    }
  })
}

const pathErrors = [invalidPath('a segment is empty'), reservedPath('tree')]

/** The caller of a request, as the entry of a change names it. */
export function actorOf(request: FastifyRequest): Actor {
  const { username, token } = callerOf(request)
  return { by: username, token: token?.name ?? null, requestId: request.id }
}

/** The path. @throws {HttpError} `file_not_found` outside the caller's folders. */
export function requirePath(caller: Caller, path: string): string {
  if (!allowsPath(caller, path)) throw fileNotFound(path)
  return path
}

/** The directory, without a trailing slash. @throws {HttpError} `directory_not_found` outside the caller's folders. */
export function requireDirectory(caller: Caller, directory: string): string {
  if (!allowsPath(caller, `${directory}/`)) throw directoryNotFound(directory)
  return directory
}

/** `requirePath` of a path as a client has written it. @throws {HttpError} what is wrong with it, too. */
export const requireWrittenPath = (caller: Caller, text: string) =>
  requirePath(caller, readWrittenPath(text))

/** `requireDirectory` of a directory as a client has written it. @throws {HttpError} what is wrong with it, too. */
export const requireWrittenDirectory = (caller: Caller, text: string) =>
  requireDirectory(caller, readDirectory(text))

function checkRequest(request: FastifyRequest, folders: string[]) {
  const kind = request.routeOptions.config.folders
  if (kind === 'none' || kind === 'handler') return
  if (kind === 'prefix') return limitPrefix(request.query as Record<string, unknown>, folders) // Not yet validated.
  const { '*': rest = '' } = request.params as Record<string, string> // As `path` promises.
  const path = readUrlPath(request.url, rest)
  if (!allowsPath({ folders }, path)) throw fileNotFound(path)
}

function limitPrefix(query: Record<string, unknown>, folders: string[]) {
  const { prefix = '' } = query
  if (typeof prefix !== 'string') return // Refused by the schema.
  const directory = readDirectory(prefix)
  if (directory !== '' && allowsPath({ folders }, `${directory}/`)) return
  const [only] = folders
  if (folders.length > 1) {
    const message = `must be inside one of your folders: ${folders.join(', ')}`
    throw validationFailed([{ path: '/query/prefix', message }])
  }
  if (only === undefined || directory !== '') throw directoryNotFound(prefix)
  query.prefix = only
}
