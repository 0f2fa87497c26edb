import createClient, { type Client } from 'openapi-fetch'
import type { components, paths } from '../generated/static-service.d.ts'
import { ProblemError } from './problem-error.ts'
import { partBytes, type UploadOptions, uploadResumably } from './resumable-upload.ts'
import { type ClientOptions, openSession, type Session } from './session.ts'
import { unwrap } from './unwrap.ts'

export type { UploadOptions }

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
    const { onProgress, onlyIfNew, signal } = options
    if (content.size > partBytes) {
      await uploadResumably(path, content, { ...options, ...this.#session })
      return unwrap(this.api.GET('/api/files/{path}', { params: { path: { path } } }))
    }
    const url = `${this.#session.baseUrl}/api/files/${encodePath(path)}`
    const response = await this.#session.send(
      new Request(url, {
        method: 'PUT',
        headers: {
          'content-type': content.type || 'application/octet-stream',
          ...(onlyIfNew ? { 'if-none-match': '*' } : {}),
        },
        body: onProgress ? content.stream().pipeThrough(countBytes(content, onProgress)) : content,
        ...(onProgress ? { duplex: 'half' } : {}),
        ...(signal ? { signal } : {}),
      }),
    )
    if (!response.ok) throw await ProblemError.from(response)
    return (await response.json()) as StoredFile // As the OpenAPI document of this route says.
  }
}

// Keep slashes: `%2F` is not a separator.
const encodePath = (path: string) => path.split('/').map(encodeURIComponent).join('/')

function countBytes({ size }: Blob, onProgress: (sent: number, total: number) => void) {
  let sent = 0
  return new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      sent += chunk.length
      onProgress(sent, size)
      controller.enqueue(chunk)
    },
  })
}
