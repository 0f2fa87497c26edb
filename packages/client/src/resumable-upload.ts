import { ProblemError } from './responses.ts'
import type { Session } from './session.ts'

export interface UploadOptions {
  /** Called with the bytes read so far and in total; the last call has both equal. */
  onProgress?: (sent: number, total: number) => void
}

/** Larger files are sent in several requests of this many bytes: below the limits of common proxies. */
export const partBytes = 16_777_216

/**
 * Stores a blob by tus 1.0. After a lost connection or an unavailable service it resumes at the offset of the service.
 * Fails after seven retries (two minutes) without progress.
 * @throws {ProblemError} if the service rejects the file.
 */
export async function uploadResumably(path: string, content: Blob, options: UploadOptions & Session): Promise<void> {
  const { onProgress, sleep } = options
  let url = ''
  let offset = 0
  for (let failures = 0; ; ) {
    onProgress?.(offset, content.size)
    try {
      url ||= await create(path, content, options)
      // Bytes of the failed request may have arrived, so ask for the offset.
      const known = failures > 0 ? offsetOf(await send(options, url, { method: 'HEAD' })) : offset
      if (known > offset) failures = 0
      offset = known
      const part = content.slice(offset, offset + partBytes)
      const answer = await append(url, { offset, part }, options)
      if (answer.isStored) return onProgress?.(content.size, content.size)
      if (answer.offset <= offset) throw new Error('The upload makes no progress: try again later')
      offset = answer.offset
      failures = 0
    } catch (error) {
      if (failures === maxFailures || !mayPass(error)) {
        // Delete it: unfinished uploads count against the user's limit.
        if (url) await send(options, url, { method: 'DELETE' }).catch(() => undefined)
        throw error
      }
      failures += 1
      await sleep(Math.min(30_000, 500 * 2 ** failures))
    }
  }
}

async function create(path: string, { size }: Blob, session: Session) {
  const name = btoa(String.fromCharCode(...new TextEncoder().encode(path)))
  const headers = { 'upload-length': String(size), 'upload-metadata': `path ${name}` }
  const response = await send(session, '/api/uploads/', { method: 'POST', headers })
  return response.headers.get('location') ?? ''
}

async function append(url: string, { offset, part }: { offset: number; part: Blob }, session: Session) {
  const headers = { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream' }
  const response = await send(session, url, { method: 'PATCH', headers, body: part })
  return { offset: offsetOf(response), isStored: response.headers.has('content-location') }
}

const offsetOf = ({ headers }: Response) => Number(headers.get('upload-offset'))

async function send({ baseUrl, send: sendRequest }: Session, url: string, init: RequestInit): Promise<Response> {
  const headers = { 'tus-resumable': '1.0.0', ...init.headers }
  const response = await sendRequest(new Request(new URL(url, `${baseUrl}/`), { ...init, headers }))
  if (!response.ok) throw await ProblemError.from(response)
  await response.body?.cancel()
  return response
}

/** Whether a failure is transient. `fetch` throws TypeError for a failed connection. 507 (full) is not transient. */
export const mayPass = (error: unknown) =>
  error instanceof ProblemError
    ? [408, 423, 429, 500, 502, 503, 504].includes(error.status) || error.code === 'offset_conflict'
    : error instanceof TypeError

const maxFailures = 7
