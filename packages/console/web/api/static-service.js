import { urlOf } from '../core/services.js'
import { request } from './client.js'

/**
 * The public API of the static service, uploads apart (upload-request.js).
 * @import { CategoryCount, DirectoryNode, FileList, FileRecord, Statistics, VersionList, VersionRecord }
 *   from './schema.d.ts'
 */

const service = 'files'

/** @param {Record<string, string | number | undefined>} query @param {AbortSignal} [signal] */
export async function listFiles(query, signal) {
  const { body } = await request(service, '/api/files/', { query, signal })
  return /** @type {FileList} */ (body)
}

/** @param {string} path @param {AbortSignal} [signal] */
export async function getFile(path, signal) {
  const { body } = await request(service, `/api/files/${encodePath(path)}`, { signal })
  return /** @type {FileRecord} */ (body)
}

/**
 * One level of the tree: the directory and those directly in it.
 * @param {string} prefix
 * @param {AbortSignal} [signal]
 */
export async function getDirectory(prefix, signal) {
  const query = { prefix, depth: 1 }
  const { body } = await request(service, '/api/files/tree', { query, signal })
  return /** @type {{ tree: DirectoryNode }} */ (body).tree
}

/** Of the files below a directory. @param {string} prefix @param {AbortSignal} [signal] */
export async function listCategories(prefix, signal) {
  const query = { prefix }
  const { body } = await request(service, '/api/files/categories', { query, signal })
  return /** @type {{ categories: CategoryCount[] }} */ (body).categories
}

/** @param {{ from: string, to: string, overwrite?: boolean }} move */
export async function moveFiles(move) {
  const { body } = await request(service, '/api/files/move', { method: 'POST', json: move })
  return /** @type {{ files_moved: number }} */ (body)
}

/** @param {{ paths: string[] } | { prefix: string }} which */
export async function deleteFiles(which) {
  const { body } = await request(service, '/api/files/delete', { method: 'POST', json: which })
  return /** @type {{ files_deleted: number, bytes_freed: number }} */ (body)
}

/** @param {number} page @param {AbortSignal} [signal] */
export async function listVersions(page, signal) {
  const query = { page, page_size: 20 }
  const { body } = await request(service, '/api/versions/', { query, signal })
  return /** @type {VersionList} */ (body)
}

/** @param {string} version @param {AbortSignal} [signal] */
export async function getVersion(version, signal) {
  const { body } = await request(service, `/api/versions/${encodeURIComponent(version)}`, {
    signal,
  })
  return /** @type {VersionRecord} */ (body)
}

/** @param {{ version: string, changelog: string }} version */
export async function createVersion(version) {
  const { body } = await request(service, '/api/versions/', { method: 'POST', json: version })
  return /** @type {VersionRecord} */ (body)
}

/** @param {AbortSignal} [signal] */
export async function getStatistics(signal) {
  const { body } = await request(service, '/api/versions/stats', { signal })
  return /** @type {Statistics} */ (body)
}

/**
 * Where the content of a file is served, without a token. `version` pins it to a digest, so that it can be cached.
 * @param {string} path
 * @param {{ sha256?: string, download?: boolean }} [options]
 */
export function contentUrl(path, { sha256, download = false } = {}) {
  const query = [...(download ? ['download'] : []), ...(sha256 ? [`v=${sha256.slice(0, 16)}`] : [])]
  const search = query.length > 0 ? `?${query.join('&')}` : ''
  return `${urlOf(service)}/static/${encodePath(path)}${search}`
}

/** @param {string} path */
export const encodePath = (path) => path.split('/').map(encodeURIComponent).join('/')
