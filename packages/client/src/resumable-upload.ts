import { ProblemError } from './responses.ts'
import type { Session } from './session.ts'

export interface UploadOptions {
  /** Called with the bytes read so far and in total; the last call has both equal. */
  onProgress?: (sent: number, total: number) => void
  /** Fail with 412 if the path exists. */
  onlyIfNew?: boolean
  signal?: AbortSignal
}

type Sending = UploadOptions & Session

/** Larger files are sent in several requests of this many bytes: below the limits of common proxies. */
export const partBytes = 16_777_216

/**
 * Stores a blob by tus 1.0. After a lost connection or an unavailable service it resumes at the offset of the service.
 * Fails after seven retries (two minutes) without progress.
 * @throws {ProblemError} if the service rejects the file.
 */
export async function uploadResumably(path: string, content: Blob, options: Sending): Promise<void> {
  const { onProgress, sleep } = options
  let url = ''
  let offset = 0
  for (let failures = 0; ; ) {
    onProgress?.(offset, content.size)
    try {
      url ||= await create(path, content, options)
      // Bytes of the failed request may have arrived, so ask for the offset.
      const known = failures > 0 ? await readOffset(url, options) : offset
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
        if (url) await send('DELETE', url, options).catch(() => undefined)
        throw error
      }
      failures += 1
      await sleep(Math.min(30_000, 500 * 2 ** failures))
    }
  }
}

async function create(path: string, { size }: Blob, options: Sending) {
  const metadata = { path, overwrite: String(!options.onlyIfNew) }
  const pairs = Object.entries(metadata).map(([key, value]) => `${key} ${encode(value)}`)
  const headers = { 'upload-length': String(size), 'upload-metadata': pairs.join(',') }
  const response = await send('POST', '/api/uploads/', options, { headers })
  return response.headers.get('location') ?? ''
}

async function append(url: string, { offset, part }: { offset: number; part: Blob }, options: Sending) {
  const headers = { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream' }
  const response = await send('PATCH', url, options, { headers, body: part })
  return { offset: offsetOf(response), isStored: response.headers.has('content-location') }
}

const readOffset = async (url: string, options: Sending) => offsetOf(await send('HEAD', url, options))

const offsetOf = ({ headers }: Response) => Number(headers.get('upload-offset'))

async function send(
  method: string,
  url: string,
  { baseUrl, signal, ...options }: Sending,
  { headers = {}, body }: { headers?: Record<string, string>; body?: Blob } = {},
): Promise<Response> {
  const request = new Request(new URL(url, `${baseUrl}/`), {
    method,
    headers: { 'tus-resumable': '1.0.0', ...headers },
    ...(body && { body }),
    ...(signal && { signal }),
  })
  const response = await options.send(request)
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

const encode = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))
