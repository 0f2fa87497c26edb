import { request, withLogin } from '../../api/client.js'
import { ApiError, config, explain, unreachable, urlOf } from '../../api/transport.js'

/**
 * @import { Upload } from './upload-queue.js'
 * @typedef {Pick<Upload, 'file' | 'path' | 'choice'>} ChosenFile
 * @typedef {{ signal: AbortSignal, onProgress: (sent: number) => void }} Sending
 */

/**
 * Uploads a large file part by part, or small ones together, all or none. What passes by itself is tried again by itself.
 * @param {Sending & { files: ChosenFile[], onWait: (error: ApiError) => void }} upload all with the choice to replace, or all without: then
 *   files that exist are refused with `precondition_failed`; `onWait`: interrupted by this, and tried again after a pause
 * @returns {Promise<unknown>}
 * @throws {ApiError}
 */
export const send = ({ files, onWait, ...sending }) => {
  const [first] = files
  const isLarge = first && isResumable(first.file)
  const sent = isLarge ? sendRest({ ...first, ...sending }) : sendTogether(files, sending)
  return sent.catch(async (error) => {
    if (!isPassing(error)) throw error
    onWait(error)
    await pause(sending.signal)
    return send({ files, onWait, ...sending })
  })
}

/** @param {ChosenFile[]} files @param {Sending} sending */
async function sendTogether(files, { signal, onProgress }) {
  const [only] = files.length === 1 ? files : []
  const body = new FormData()
  if (only) body.append('path', only.path)
  for (const { file, path } of files) body.append(only ? 'file' : 'files', file, path)
  // A file that changed meanwhile is refused here, with a reason.
  await Promise.all(files.map(({ file }) => file.slice(0, 1).arrayBuffer()))
  /** @type {Record<string, string>} */
  const headers = files[0]?.choice === 'replace' ? {} : { 'if-none-match': '*' }
  const path = `/api/files/upload${only ? '' : '/batch'}`
  return sendBytes('POST', path, { headers, body, signal, onProgress })
}

/**
 * XMLHttpRequest, since fetch reports no progress of what is sent.
 * @param {string} method
 * @param {string} path
 * @param {Sending & { headers: Record<string, string>, body: FormData | Blob }} message
 * @throws {ApiError}
 */
const sendBytes = (method, path, { headers, body, signal, onProgress }) =>
  withLogin('files', (authorization) => {
    /** @type {PromiseWithResolvers<XMLHttpRequest>} */
    const { promise, resolve, reject } = Promise.withResolvers()
    const request = new XMLHttpRequest()
    request.open(method, `${urlOf('files')}${path}`)
    for (const [name, value] of Object.entries({ ...headers, authorization })) request.setRequestHeader(name, value)
    request.responseType = 'json'
    request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded))
    request.addEventListener('load', () => {
      const { status, response } = request
      if (status < 400) resolve(request)
      else reject(new ApiError(status, response, (name) => request.getResponseHeader(name)))
    })
    request.addEventListener('error', () => reject(unreachable('files')))
    request.addEventListener('abort', () => reject(cancelled()))
    if (signal.aborted) throw cancelled()
    signal.addEventListener('abort', () => request.abort(), { once: true })
    request.send(body)
    return promise
  })

const cancelled = () => new DOMException('Cancelled', 'AbortError')

/**
 * Large files by tus (https://tus.io): part by part, and after an interruption from where the service says. The addresses
 * of unfinished uploads outlive a reload, in the tab's `sessionStorage`.
 */

const storedName = 'uploads'
const tus = { 'tus-resumable': '1.0.0' }
const pauseMs = 2000

/** @param {File} file */
export const isResumable = ({ size }) => size > config.upload_part_bytes

/** Ends it at the service, which forgets its bytes. @param {ChosenFile} upload */
export async function discard(upload) {
  const address = readStored()[keyOf(upload)]
  keep(upload, undefined)
  if (address) await end(address)
}

// The request that was cancelled may hold it for a moment. Unreachable: it expires there.
/** @param {string} address @returns {Promise<unknown>} */
const end = (address, attempts = 20) =>
  request('files', address, { method: 'DELETE', headers: tus }).catch((error) => {
    if (explain(error).code === 'upload_locked' && attempts > 0) setTimeout(() => void end(address, attempts - 1), 1000)
  })

/** Paths whose upload was interrupted by a reload: the same files, chosen again, continue. */
export const interruptedPaths = () => Object.keys(readStored()).map((key) => /** @type {string} */ (JSON.parse(key)[0]))

/** @param {ChosenFile & Sending} upload */
async function sendRest(upload) {
  const { file, signal, onProgress } = upload
  const known = readStored()[keyOf(upload)]
  const found = known && (await offsetOf(known, signal))
  const address = found === undefined || !known ? await create(upload) : known
  let offset = found || 0
  do {
    onProgress(offset)
    const start = offset
    const body = file.slice(start, start + config.upload_part_bytes)
    await body.slice(0, 1).arrayBuffer() // A file that changed meanwhile is refused here, with a reason.
    const type = 'application/offset+octet-stream'
    const headers = { ...tus, 'upload-offset': String(start), 'content-type': type }
    const onSent = (/** @type {number} */ sent) => onProgress(start + sent)
    const answer = await sendBytes('PATCH', address, { headers, body, signal, onProgress: onSent })
    offset = Number(answer.getResponseHeader('upload-offset'))
  } while (offset < file.size)
  keep(upload, undefined)
}

/** @param {ChosenFile & Sending} upload @returns {Promise<string>} its address */
async function create(upload) {
  const { file, path, choice, signal } = upload
  const metadata = `path ${toBase64(path)},overwrite ${toBase64(String(choice === 'replace'))}`
  const { header } = await request('files', '/api/uploads', {
    method: 'POST',
    headers: { ...tus, 'upload-length': String(file.size), 'upload-metadata': metadata },
    signal,
  })
  const address = header('location') ?? ''
  keep(upload, address)
  return address
}

/** What arrived of an upload; undefined where it has expired. @param {string} address @param {AbortSignal} signal */
const offsetOf = (address, signal) =>
  request('files', address, { method: 'HEAD', headers: tus, signal }).then(
    ({ header }) => Number(header('upload-offset')),
    (error) => {
      if (![404, 410].includes(error.status)) throw error
    },
  )

// The line, a service that starts again, another writer that is not gone yet.
/** @param {unknown} error */
const isPassing = (error) =>
  error instanceof ApiError &&
  (error.retryAfter !== undefined || error.status === 423 || error.code === 'offset_conflict')

/** @param {AbortSignal} signal @returns {Promise<unknown>} */
const pause = (signal) =>
  new Promise((resolve, reject) => {
    setTimeout(resolve, pauseMs)
    addEventListener('online', resolve, { once: true, signal })
    signal.addEventListener('abort', () => reject(cancelled()), { once: true })
  })

/** @param {ChosenFile} upload */
const keyOf = ({ file, path, choice }) => JSON.stringify([path, choice === 'replace', file.size, file.lastModified])

/** @returns {Record<string, string>} addresses by key */
const readStored = () => JSON.parse(sessionStorage.getItem(storedName) ?? '{}')

/** @param {ChosenFile} upload @param {string | undefined} address */
function keep(upload, address) {
  const stored = JSON.stringify({ ...readStored(), [keyOf(upload)]: address })
  if (stored === '{}') sessionStorage.removeItem(storedName)
  else sessionStorage.setItem(storedName, stored)
}

/** @param {string} text */
const toBase64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))
