import { urlOf } from '../core/services.js'
import { session } from '../core/session.js'
import { request } from './client.js'
import { encodePath } from './static-service.js'

/**
 * The history of files: who changed what, and how it was before.
 * @import { FileChange, FileChanges, FileHistory, FileRecord } from './schema.d.ts'
 */

const service = 'files'

/** @param {Record<string, string | number | undefined>} query @param {AbortSignal} [signal] */
export async function listFileChanges(query, signal) {
  const { body } = await request(service, '/api/changes', { query, signal })
  return /** @type {FileChanges} */ (body)
}

/** @param {number} id @param {{ overwrite?: boolean }} [options] overwrite: also what was changed since */
export async function revertFileChange(id, options = {}) {
  const path = `/api/changes/${id}/revert`
  const { body } = await request(service, path, { method: 'POST', json: options })
  return /** @type {FileChange} */ (body)
}

/** Takes back the last deletion that this person made. */
export async function undoDeletion() {
  const by = session.loginOf(service)?.username
  const { changes } = await listFileChanges({ by, action: 'delete', page_size: 1 })
  if (changes[0]) await revertFileChange(changes[0].id)
}

/** Every state of a path, newest first. @param {string} path @param {AbortSignal} [signal] */
export async function listFileHistory(path, signal) {
  const { body } = await request(service, '/api/history', {
    query: { path, page_size: 50 },
    signal,
  })
  return /** @type {FileHistory} */ (body)
}

/** The bytes of a path as they were after a change. @param {string} path @param {number} change */
export const getPastContent = (path, change) =>
  fetchBlob(`/api/history/content?${new URLSearchParams({ path, change: String(change) })}`)

/** A folder as an archive. @param {string} prefix */
export const getArchive = (prefix) =>
  fetchBlob(`/api/trees/${encodePath(prefix)}`, { accept: 'application/zip' })

/** Stores bytes at a path. @param {string} path @param {Blob} content */
export async function putFile(path, content) {
  const address = `/api/files/${encodePath(path)}`
  const { body } = await request(service, address, { method: 'PUT', body: content })
  return /** @type {FileRecord} */ (body)
}

/** @param {string} path @param {Record<string, string>} [headers] */
async function fetchBlob(path, headers = {}) {
  // Renews the login where it has ended; the bytes then come without a detour over text.
  await request(service, '/api/auth/me')
  const authorization = `Bearer ${session.loginOf(service)?.token ?? ''}`
  const response = await fetch(urlOf(service) + path, { headers: { ...headers, authorization } })
  if (response.ok) return response.blob()
  throw new Error(JSON.parse(await response.text()).detail)
}
