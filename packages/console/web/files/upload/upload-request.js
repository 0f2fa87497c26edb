import { withLogin } from '../../api/client.js'
import { toApiError, unreachable } from '../../api/problem.js'
import { toUrl } from '../../api/transport.js'
import { urlOf } from '../../core/services.js'

/**
 * Uploads one file. XMLHttpRequest, since fetch reports no progress of what is sent. All uploads have one URL, so that
 * the browser's preflight is needed once.
 * @param {{ file: File, path: string, replace: boolean, signal: AbortSignal, onProgress: (sent: number) => void }} upload
 *   without `replace` an existing file is refused with `precondition_failed`
 * @returns {Promise<void>}
 * @throws {ApiError}
 */
export const sendFile = (upload) =>
  withLogin('files', (authorization) => sendOnce(upload, authorization))

/** @param {Parameters<typeof sendFile>[0]} upload @param {string} authorization @returns {Promise<void>} */
function sendOnce({ file, path, replace, signal, onProgress }, authorization) {
  /** @type {PromiseWithResolvers<void>} */
  const { promise, resolve, reject } = Promise.withResolvers()
  const request = new XMLHttpRequest()
  request.open('POST', toUrl('files', '/api/files/upload'))
  request.setRequestHeader('authorization', authorization)
  if (!replace) request.setRequestHeader('if-none-match', '*')
  request.responseType = 'json'
  request.upload.addEventListener('progress', ({ loaded }) =>
    onProgress(Math.min(loaded, file.size)),
  )
  request.addEventListener('load', () => {
    if (request.status < 400) resolve()
    else
      reject(
        toApiError(request.status, request.response, (name) => request.getResponseHeader(name)),
      )
  })
  request.addEventListener('error', () => reject(unreachable('files', urlOf('files'))))
  request.addEventListener('abort', () => reject(new DOMException('Cancelled', 'AbortError')))
  signal.addEventListener('abort', () => request.abort(), { once: true })
  const form = new FormData()
  form.append('path', path)
  form.append('file', file)
  request.send(form)
  return promise
}
