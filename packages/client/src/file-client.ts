import createClient, { type Client } from 'openapi-fetch'
import type { components, paths } from '../generated/static-service.d.ts'
import { ProblemError, unwrap } from './responses.ts'
import { partBytes, type UploadOptions, uploadResumably } from './resumable-upload.ts'
import { type ClientOptions, openSession, type Session } from './session.ts'

export type StoredFile = components['schemas']['StoredFile']

/** A client of the static service, typed by its OpenAPI document. */
export class FileClient {
  /** Every operation, by path and method; see openapi-fetch. */
  readonly api: Client<paths>
  readonly #session: Session

  constructor(options: ClientOptions) {
    this.#session = openSession(options)
    this.api = createClient<paths>({
      baseUrl: this.#session.baseUrl,
      fetch: this.#session.send,
      pathSerializer: (pathname, parameters) =>
        pathname.replace(/\{(\w+)\}/g, (_match, name) => encodePath(String(parameters[name]))),
    })
  }

  /**
   * Stores a blob at a path, and replaces an existing file. Over 16 MiB it is sent in several requests, each repeated
   * after a failure.
   * @throws {ProblemError}
   */
  async upload(path: string, content: Blob, options: UploadOptions = {}): Promise<StoredFile> {
    const params = { path: { path } }
    if (content.size > partBytes) {
      await uploadResumably(path, content, { ...options, ...this.#session })
      return unwrap(this.api.GET('/api/files/{path}', { params }))
    }
    const stored = await unwrap(
      this.api.PUT('/api/files/{path}', {
        params,
        body: content,
        bodySerializer: (body) => body,
        headers: { 'content-type': content.type || 'application/octet-stream' },
      }),
    )
    options.onProgress?.(content.size, content.size)
    return stored
  }
}

// Keep slashes: `%2F` is not a separator. A URL drops `.` and `..`, also encoded: it would name another file.
function encodePath(path: string): string {
  if (!/(?:^|\/)\.\.?(?:\/|$)/.test(path)) return path.split('/').map(encodeURIComponent).join('/')
  throw new ProblemError({ status: 400, code: 'invalid_path', detail: `Invalid path "${path}": it has . or .. in it` })
}
