import { withLogin } from '../../api/client.js'
import { toApiError, unreachable } from '../../api/problem.js'
import { toUrl } from '../../api/transport.js'
import { urlOf } from '../../core/services.js'

/**
 * @typedef {{ file: File, path: string, replace: boolean, signal: AbortSignal, onProgress: (sent: number) => void }} FileUpload
 *   without `replace` an existing file is refused with `precondition_failed`
 */

/**
 * Uploads one file. All uploads have one URL, so that the browser's preflight is needed once.
 * @param {FileUpload} upload
 * @throws {ApiError}
 */
export function sendFile({ file, path, replace, signal, onProgress }) {
  const body = new FormData()
  body.append('path', path)
  body.append('file', file)
  /** @type {Record<string, string>} */
  const headers = replace ? {} : { 'if-none-match': '*' }
  return sendBytes('POST', '/api/files/upload', { headers, body, signal, onProgress })
}

/**
 * XMLHttpRequest, since fetch reports no progress of what is sent.
 * @param {string} method
 * @param {string} path
 * @param {{ headers: Record<string, string>, body: FormData | Blob, signal: AbortSignal,
 *   onProgress: (sent: number) => void }} message
 * @returns {Promise<XMLHttpRequest>}
 * @throws {ApiError}
 */
export const sendBytes = (method, path, { headers, body, signal, onProgress }) =>
  withLogin('files', (authorization) => {
    /** @type {PromiseWithResolvers<XMLHttpRequest>} */
    const { promise, resolve, reject } = Promise.withResolvers()
    const request = new XMLHttpRequest()
    request.open(method, toUrl('files', path))
    for (const [name, value] of Object.entries({ ...headers, authorization }))
      request.setRequestHeader(name, value)
    request.responseType = 'json'
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded))
    request.addEventListener('load', () => {
      const { status, response } = request
      if (status < 400) resolve(request)
      else reject(toApiError(status, response, (name) => request.getResponseHeader(name)))
    })
    request.addEventListener('error', () => reject(unreachable('files', urlOf('files'))))
    request.addEventListener('abort', () => reject(cancelled()))
    if (signal.aborted) throw cancelled()
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(body)
    return promise
  })

export const cancelled = () => new DOMException('Cancelled', 'AbortError')
