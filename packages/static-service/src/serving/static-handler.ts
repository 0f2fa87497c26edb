import type { IncomingMessage } from 'node:http'
import { prepareHead, type RawResponse, type RawRoute } from '@domains-and-files/http'
import { maxSmallBytes } from '../blobs/stored-blob.ts'
import type { Config } from '../config.ts'
import { fileNotFound, preconditionFailed, rangeNotSatisfiable } from '../errors.ts'
import { join, nameOf } from '../files/file-path.ts'
import { frame, selectRanges } from '../rfc9110/byte-ranges.ts'
import { evaluateConditions } from '../rfc9110/conditional-requests.ts'
import type { ContentCoding } from '../rfc9110/content-codings.ts'
import { chooseCoding, preferCodings } from '../rfc9110/content-negotiation.ts'
import type { ContentCache } from './content-cache.ts'
import { type Content, joinPieces, type Loaded, openStream } from './content-stream.ts'
import type { ReadableFiles } from './readable-files.ts'
import {
  canOffload,
  crossOriginHeaders,
  type Headers,
  hasReliableDate,
  headOf,
  type LinkedFile,
  notModifiedHead,
  type Offload,
  offloadHead,
  partHead,
  representationOf,
  respondToOther,
  type Selected as SelectedFile,
  type ServedFile,
  withVary,
} from './served-file.ts'
import {
  cleanUrlTarget,
  indexOf,
  maxPlainLength,
  notFoundPage,
  plainPath,
  readTarget,
  siteOf,
  siteOfFile,
  type Target,
} from './static-target.ts'

interface Dependencies {
  cache: ContentCache
  files: ReadableFiles
  rules: Config['static']
  isForwarded: (request: IncomingMessage) => boolean
  /** Milliseconds since 1970; passed in by tests. */
  now?: () => number
}

interface Asked {
  request: IncomingMessage
  target: Target
  /** The file answers for another path. A different file may appear there later, so its date is not sent. */
  isFallback: boolean
  attempt: number
  link?: LinkedFile | undefined
}

type Selected = Asked & SelectedFile

type Reply = RawResponse | Promise<RawResponse>

/**
 * /static/{path}: conditions, ranges and content codings by RFC 9110 (docs/adr/0005). Each response is a snapshot: the file
 * at one moment after the request arrived, with the validators of those bytes. Bytes in memory are sent synchronously.
 */
export class StaticHandler implements RawRoute {
  readonly prefix = '/static/'
  readonly url = '/static/*'
  readonly failureHeaders = { ...crossOriginHeaders, 'cache-control': 'no-store' }
  readonly #dependencies: Dependencies

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /**
   * @throws {HttpError} `invalid_path`, `file_not_found`, `precondition_failed`, `range_not_satisfiable` or
   *   `method_not_allowed`.
   */
  respond(request: IncomingMessage): Reply {
    const { method, url = '' } = request
    if (method !== 'GET' && method !== 'HEAD') return respondToOther(request)
    const path = url.length <= maxPlainLength ? plainPath.exec(url)?.[1] : undefined
    const { files, rules } = this.#dependencies
    const target = path ? { path, isDirectory: false, query: undefined } : readTarget(url, rules)
    const asked = { request, target, isFallback: false, attempt: 0 }
    return this.#serve(asked, files.find(request, target.path))
  }

  /** Responds with the file of a link. @throws {HttpError} as `respond`, or as the link. */
  respondWith(request: IncomingMessage, target: Target, link: LinkedFile): Promise<RawResponse> {
    const asked = { request, target, link, isFallback: false, attempt: 0 }
    return link.find().then((file) => this.#serve(asked, file))
  }

  #serve(asked: Asked, file: Loaded<ServedFile>): Reply {
    if (file instanceof Promise) return file.then((found) => this.#serve(asked, found))
    if (!file) return this.#serveMissing(asked)
    const { request, attempt, isFallback } = asked
    const { now = Date.now } = this.#dependencies
    const isDated = !isFallback && hasReliableDate(file, now())
    const identity = representationOf(file, 'identity', isDated)
    const { validators } = identity
    const selection =
      request.headers.range === undefined ? 'whole' : selectRanges(request, { validators, size: file.row.size })
    const selected = { ...asked, file, selection, representation: identity, status: 200 } as const
    // Ranges select identity bytes. A retry sends identity as well: a compressed form may have been missing.
    const isNegotiated = file.isCompressible && selection === 'whole' && attempt === 0
    return isNegotiated ? this.#negotiate(selected) : this.#answer(selected)
  }

  #negotiate(selected: Selected): Reply {
    const { request, file, representation: identity } = selected
    const preferred = preferCodings(request.headers['accept-encoding'])
    if (preferred[0] === 'identity') return this.#answer(selected)
    const isDated = identity.validators.changed !== undefined
    const answer = (stored: readonly ContentCoding[] = []) => {
      const coding = chooseCoding(preferred, stored)
      return this.#answer({ ...selected, representation: representationOf(file, coding, isDated) })
    }
    const stored = this.#dependencies.cache.codings(file)
    return stored instanceof Promise ? stored.then(answer) : answer(stored)
  }

  #answer(selected: Selected): Reply {
    const { request, link, file, selection, representation } = selected
    const { cache, rules, isForwarded } = this.#dependencies
    const verdict = evaluateConditions(request.headers, representation.validators)
    if (verdict === 'failed') throw withVary(preconditionFailed(link ? nameOf(file.row.path) : file.row.path), file)
    if (verdict === 'not modified') return { head: notModifiedHead(selected) }
    if (selection === 'unsatisfiable') throw withVary(rangeNotSatisfiable(file.row.size), file)
    if (request.method === 'HEAD') return this.#respondHead(selected)
    if (link) return this.#admit(selected, link)
    const { whole, text } = representation
    const isPlain = selection === 'whole' && !selected.target.query
    if (isPlain && whole && whole.size === text?.length) {
      cache.counts.hit += 1
      return { head: whole.head, body: text }
    }
    const { offload } = rules
    const isOffloaded = offload && canOffload(selected, offload) && isForwarded(request)
    return isOffloaded ? this.#offload(selected, offload) : this.#sendContent(selected)
  }

  async #admit(selected: Selected, link: LinkedFile): Promise<RawResponse> {
    const { selection } = selected
    const isFromStart = !Array.isArray(selection) || selection.some(({ start }) => start === 0)
    // Counted once, and not if the content cannot be read.
    const reply = await this.#sendContent({ ...selected, link: { ...link, admit: async () => undefined } })
    await link.admit(isFromStart).catch(async (error) => {
      if (typeof reply.body === 'object' && 'next' in reply.body) await reply.body.return?.()
      throw error
    })
    return reply
  }

  #sendContent(selected: Selected): Reply {
    const content = this.#dependencies.cache.content(selected.file, selected.representation.coding)
    if (!(content instanceof Promise)) return this.#send(selected, content)
    return content.then((found) => this.#send(selected, found))
  }

  #send(selected: Selected, content: Content | undefined): Reply {
    if (!content) return this.#retry(selected)
    const { target, file, selection, representation, status } = selected
    if (selection !== 'whole' || !Buffer.isBuffer(content)) return sendPieces(selected, content)
    const { whole } = representation
    const isPrepared = whole?.size === content.length && !target.query && status === 200
    const head = isPrepared ? whole.head : headOf(selected, content.length)
    // Node sends headers and a string body in one write.
    if (file.row.size > maxTextBytes) return { head, body: content }
    representation.text ??= content.toString('latin1')
    return { head, body: representation.text }
  }

  // The file, or its compressed form, was replaced or deleted after the row was read.
  #retry({ request, target, attempt, link, file, status }: Selected): Reply {
    const { cache, files } = this.#dependencies
    cache.invalidate(file)
    if (status === 404) throw fileNotFound(target.path)
    if (attempt + 1 === maxAttempts) throw new Error(`the blob of ${target.path} is missing`)
    const asked = { request, target, link, isFallback: false, attempt: attempt + 1 }
    return this.#serve(asked, link ? link.find() : files.find(request, target.path))
  }

  async #respondHead(selected: Selected): Promise<RawResponse> {
    const size = await this.#dependencies.cache.sizeOf(selected.file, selected.representation.coding)
    return size === undefined ? this.#retry(selected) : { head: headOf(selected, size) }
  }

  async #offload(selected: Selected, { to }: Offload): Promise<RawResponse> {
    const size = await this.#dependencies.cache.sizeOf(selected.file, selected.representation.coding)
    if (size === undefined) return this.#retry(selected)
    if (size <= maxSmallBytes) return this.#sendContent(selected) // A row, which no proxy can read.
    return { head: offloadHead(selected, to) }
  }

  // Tries a clean URL, the redirect to a directory's index, a recently removed file, then the site's 404 page.
  async #serveMissing(asked: Asked): Promise<RawResponse> {
    const { request } = asked
    const { files, rules } = this.#dependencies
    // Validates the path, which `plainPath` skipped.
    const { path, isDirectory } = readTarget(request.url ?? '', rules)
    if (!isDirectory) {
      const cleanUrl = cleanUrlTarget(path, rules)
      const file = cleanUrl === undefined ? undefined : await files.find(request, cleanUrl)
      if (file) return this.#serve({ ...asked, isFallback: true }, file)
      const index = indexOf(path, rules)
      if (index && (await files.find(request, join(path, index)))) return this.#redirect(request)
    }
    const isInSite = !isDirectory && siteOfFile(path, rules) !== undefined
    const ended = isInSite ? await files.findEnded(path) : undefined
    // No date and no query (`?v=`): another file may take this path later.
    if (ended) {
      const target = { path, isDirectory, query: undefined }
      return this.#serve({ ...asked, target, isFallback: true }, ended)
    }
    const page = notFoundPage(path, rules)
    const file = page === undefined ? undefined : await files.find(request, page)
    if (!file) throw fileNotFound(path)
    return this.#respondPage(asked, file)
  }

  // Relative links in an index resolve against its directory, so the URL must end in a slash.
  #redirect({ url = '' }: IncomingMessage): RawResponse {
    const [pathname = '', ...query] = url.split('?')
    const name = pathname.slice(pathname.lastIndexOf('/') + 1)
    const location = [`./${name}/`, ...query].join('?')
    return { head: prepareHead(302, { ...this.failureHeaders, location, 'content-length': '0' }) }
  }

  #respondPage(asked: Asked, file: ServedFile): Reply {
    const { csp } = siteOf(asked.target.path, this.#dependencies.rules) ?? {}
    const common: Headers = { ...this.failureHeaders, ...(csp && { 'content-security-policy': csp }) }
    const representation = { ...representationOf(file, 'identity', false), common }
    const selected = { ...asked, file, selection: 'whole', representation, status: 404 } as const
    return asked.request.method === 'HEAD' ? this.#respondHead(selected) : this.#sendContent(selected)
  }
}

// A file may be replaced between reading its row and its bytes. After this many attempts the bytes are taken as lost.
const maxAttempts = 8

// Fits in what the file cache estimates per entry.
const maxTextBytes = 2048

// Sends ranges, and blobs that are not in memory.
function sendPieces(selected: Selected, content: Content): Reply {
  const { file, selection } = selected
  const isInMemory = Buffer.isBuffer(content)
  const size = isInMemory ? content.length : content.blob.size
  const part = Array.isArray(selection) ? frame(selection, { contentType: file.contentType, size }) : undefined
  const head = part ? partHead(selected, part) : headOf(selected, size)
  const pieces = part?.pieces ?? [{ start: 0, end: size }]
  if (isInMemory) return { head, body: joinPieces(content, pieces) }
  return openStream(content, pieces).then((body) => ({ head, body }))
}
