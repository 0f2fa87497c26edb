import type { IncomingMessage } from 'node:http'
import { type Auth, allowsPath } from '@domains-and-files/auth'
import { prepareHead, type RawResponse, type RawRoute } from '@domains-and-files/http'
import type { Catalog } from '../catalog/catalog.ts'
import { encodePath, readPath } from '../files/file-path.ts'
import { type Link, type Links, linkNotFound } from '../sharing/links.ts'
import type { ContentCache } from './content-cache.ts'
import { asPrivate, respondToOther } from './served-file.ts'
import type { StaticHandler } from './static-handler.ts'
import { splitTarget, type Target } from './static-target.ts'

interface Dependencies extends Pick<Auth, 'findCaller'> {
  links: Links
  cache: ContentCache
  catalog: Pick<Catalog, 'reads'>
  handler: StaticHandler
}

const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

const headers = {
  'cache-control': 'private, no-store',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'content-security-policy': `sandbox; ${contentPolicy}`,
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

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** @throws {HttpError} `link_not_found`, `method_not_allowed`, or what `StaticHandler` throws for a file. */
  async respond(request: IncomingMessage): Promise<RawResponse> {
    const { method, url = '' } = request
    if (method !== 'GET' && method !== 'HEAD') return respondToOther(request)
    const { token, rest, query } = readLinkTarget(url)
    const link = await this.#find(token)
    const isFolder = link.path.endsWith('/')
    if (!isFolder && rest !== undefined) throw linkNotFound()
    const isPage = isFolder && !rest
    const path = rest ? readOr404(() => readPath(link.path + rest)) : link.path
    if (link.downloadsLeft === 0 && (isPage || !(await this.#isContinued(request, link, path)))) throw linkNotFound()
    if (!isPage) return this.#sendFile(request, link, { path, isDirectory: false, query })
    const page = await this.#pageOf(link, rest === undefined ? token : '')
    return method === 'HEAD' ? { head: page.head } : page
  }

  // A link ends with its maker's right to read.
  async #find(token: string): Promise<Link> {
    const { links, findCaller } = this.#dependencies
    const link = await links.find(token)
    const caller = link && (await findCaller(link.maker))
    if (!caller || !allowsPath(caller, link.path)) throw linkNotFound()
    return link
  }

  // A used-up link still serves further ranges of a download that has begun.
  async #isContinued({ method, headers: { range } }: IncomingMessage, link: Link, path: string) {
    const isPart = method === 'GET' && range !== undefined
    return isPart && (await this.#dependencies.links.isUnderWay(link, path))
  }

  #sendFile(request: IncomingMessage, link: Link, target: Target) {
    const { links, cache, handler } = this.#dependencies
    const { path } = target
    return handler.respondWith(request, target, {
      find: async () => {
        const file = await cache.find(path)
        if (!file) throw linkNotFound()
        return asPrivate(file, headers)
      },
      admit: async (isFromStart) => {
        if (!(await links.admit(link, path, isFromStart))) throw linkNotFound()
      },
    })
  }

  // `base`: the name of the folder in its URL, if that does not end in a slash.
  async #pageOf({ name, path: folder }: Link, base: string) {
    const { rows, total } = await this.#dependencies.catalog.reads.list({
      prefix: folder.slice(0, -1),
      sort: 'path',
      page: 1,
      page_size: maxListed,
    })
    if (rows.length === 0) throw linkNotFound()
    const items = rows.map(({ path, size }) => {
      const below = path.slice(folder.length)
      const href = escapeHtml(['.', ...(base && [base]), encodePath(below)].join('/'))
      return `<li><a href="${href}">${escapeHtml(below)}</a> (${size} bytes)`
    })
    const more = total > rows.length ? `<p>and ${total - rows.length} more` : ''
    const title = escapeHtml(name ?? folder)
    const body = Buffer.from(
      `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
        `<title>${title}</title><h1>${title}</h1><ul>${items.join('\n')}</ul>${more}`,
    )
    return { head: prepareHead(200, { ...pageHeaders, 'content-length': String(body.length) }), body }
  }
}

// The browser may save a file that the page leads to.
const pageHeaders = {
  ...headers,
  'content-security-policy': `sandbox allow-downloads; ${contentPolicy}`,
  'content-type': 'text/html; charset=utf-8',
}

const maxListed = 1000

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** Without `rest` the target is the link itself, not what is below its folder. */
function readLinkTarget(url: string) {
  const { rest: text, query } = splitTarget(url)
  const [, token, rest] = /^([\w-]{22})(?:\/(.*))?$/s.exec(text) ?? []
  if (token === undefined || /%2f/i.test(text)) throw linkNotFound()
  return { token, rest: rest && readOr404(() => decodeURIComponent(rest)), query }
}

/** @throws {HttpError} `link_not_found` for text that cannot be a path. */
function readOr404(read: () => string): string {
  try {
    return read()
  } catch {
    throw linkNotFound()
  }
}
