import type { IncomingMessage } from 'node:http'
import { allowsPath, type Caller } from '@domains-and-files/auth'
import {
  AttemptLimit,
  HttpError,
  prepareHead,
  type RawResponse,
  type RawRoute,
} from '@domains-and-files/http'
import type { Catalog } from '../catalog/catalog.ts'
import { encodePath, readPath } from '../files/file-path.ts'
import { type Link, type Links, linkNotFound } from '../sharing/links.ts'
import type { ContentCache } from './content-cache.ts'
import { asPrivate, respondToOther } from './served-file.ts'
import type { StaticHandler } from './static-handler.ts'

interface Dependencies {
  links: Links
  cache: ContentCache
  catalog: Pick<Catalog, 'reads'>
  handler: StaticHandler
  /** The caller of a `Caller.id`, with its rights now. */
  findCaller: (id: string) => Promise<Caller | undefined>
  clientAddress: (request: IncomingMessage) => string
  /** Passed in by tests. */
  limit?: AttemptLimit
}

/** Unknown tokens a minute of one client network. */
const maxUnknown = 1000

const headers = {
  'cache-control': 'private, no-store',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
}

/** A parsed link URL. */
interface LinkTarget {
  token: string
  /** Below the folder; undefined: the link itself. */
  rest: string | undefined
  query: URLSearchParams | undefined
}

/**
 * /l/{token} and /l/{token}/{rest}: the current file of a link, or the current files below its folder, while the link's
 * maker may read them. An unusable link gets the same 404 whatever the reason.
 */
export class LinkHandler implements RawRoute {
  readonly prefix = '/l/'
  readonly url = '/l/*'
  readonly failureHeaders = headers
  readonly #dependencies: Dependencies
  readonly #limit: AttemptLimit

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
    this.#limit = dependencies.limit ?? new AttemptLimit(maxUnknown)
  }

  /** @throws {HttpError} `link_not_found`, `method_not_allowed`, `too_many_requests`, or what `StaticHandler` throws for a file. */
  async respond(request: IncomingMessage): Promise<RawResponse> {
    const { method, url = '' } = request
    if (method !== 'GET' && method !== 'HEAD') return respondToOther(request)
    const { token, rest, query } = readLinkTarget(url)
    const link = await this.#find(request, token)
    if (!(await this.#isAlive(link))) throw linkNotFound()
    const isFolder = link.path.endsWith('/')
    if (!isFolder && rest !== undefined) throw linkNotFound()
    if (isFolder && (rest === undefined || rest === '' || rest.endsWith('/'))) {
      if (link.downloadsLeft === 0) throw linkNotFound()
      return this.#sendPage(request, link, { token, rest })
    }
    const path = rest === undefined ? link.path : pathBelow(link, rest)
    if (link.downloadsLeft === 0 && !(await this.#isContinued(request, link, path)))
      throw linkNotFound()
    return this.#sendFile(request, link, { path, query })
  }

  async #find(request: IncomingMessage, token: string): Promise<Link> {
    const { links, clientAddress } = this.#dependencies
    const address = clientAddress(request)
    this.#limit.check(address)
    const link = await links.find(token)
    if (link) return link
    this.#limit.add(address)
    throw linkNotFound()
  }

  // A used-up link still serves further ranges of a download that has begun.
  async #isContinued({ method, headers: { range } }: IncomingMessage, link: Link, path: string) {
    const isPart = method === 'GET' && range !== undefined
    return isPart && (await this.#dependencies.links.isUnderWay(link, path))
  }

  // A link ends with its maker's right to read.
  async #isAlive({ maker, path }: Link): Promise<boolean> {
    const caller = await this.#dependencies.findCaller(maker)
    return caller !== undefined && allowsPath(caller, path)
  }

  #sendFile(
    request: IncomingMessage,
    link: Link,
    { path, query }: { path: string; query: URLSearchParams | undefined },
  ) {
    const { links, cache, handler } = this.#dependencies
    return handler.respondWith(
      request,
      { path, isDirectory: false, query },
      {
        find: async () => {
          const file = await cache.find(path)
          return file && asPrivate(file, headers)
        },
        admit: (isFromStart) => links.admit(link, path, isFromStart),
        missing: linkNotFound,
      },
    )
  }

  async #sendPage(
    { method }: IncomingMessage,
    link: Link,
    { token, rest }: Pick<LinkTarget, 'token' | 'rest'>,
  ): Promise<RawResponse> {
    const folder = rest ? `${pathBelow(link, rest.slice(0, -1))}/` : link.path
    const { rows, total } = await this.#dependencies.catalog.reads.list({
      ...{ prefix: folder.slice(0, -1), sort: 'path', page: 1, pageSize: maxListed },
    })
    if (rows.length === 0) throw linkNotFound()
    const base = rest === undefined ? `${token}/` : ''
    const items = rows.map(({ path, size }) => {
      const below = path.slice(folder.length)
      const href = escapeHtml(`./${base}${encodePath(below)}`)
      return `<li><a href="${href}">${escapeHtml(below)}</a> (${size} bytes)`
    })
    const more = total > rows.length ? `<p>and ${total - rows.length} more` : ''
    const title = escapeHtml(link.name ?? folder)
    const body = Buffer.from(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
        `<title>${title}</title><h1>${title}</h1><ul>${items.join('\n')}</ul>${more}`,
    )
    const head = prepareHead(200, {
      ...headers,
      // The browser may save a file that the page leads to.
      'content-security-policy': headers['content-security-policy'].replace(
        'sandbox',
        'sandbox allow-downloads',
      ),
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(body.length),
    })
    return method === 'HEAD' ? { head } : { head, body }
  }
}

const maxListed = 1000

const escapeHtml = (text: string) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** @throws {HttpError} `link_not_found` for a path that cannot be stored. */
function pathBelow({ path }: Link, rest: string): string {
  try {
    return readPath(path + rest)
  } catch (error) {
    throw error instanceof HttpError ? linkNotFound() : error
  }
}

// In origin or absolute form (RFC 9112, 3.2).
function readLinkTarget(url: string): LinkTarget {
  const [, token = '', rest, search] =
    /^(?:https?:\/\/[^/?#]*)?\/[^/?#]*\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/is.exec(url) ?? []
  const query = search === undefined ? undefined : new URLSearchParams(search)
  if (!/^[\w-]{22}$/.test(token) || /%2f/i.test(rest ?? '')) throw linkNotFound()
  try {
    return { token, rest: rest === undefined ? undefined : decodeURIComponent(rest), query }
  } catch {
    throw linkNotFound()
  }
}
