import { encodePath, get, request } from '../api/client.js'
import { urlOf } from '../core/services.js'

/** The bytes of a path as they were after a change. @param {string} path @param {number} change */
export const getPastContent = (path, change) =>
  getBlob('/api/history/content', { query: { path, change } })

/** The bytes of a private file, which are not served without a login. @param {string} path @param {AbortSignal} [signal] */
export async function getPresentContent(path, signal) {
  const query = { path, page_size: 1 }
  const { history } = await get('files', '/api/history', { query, signal })
  return getPastContent(path, history[0]?.change ?? 0)
}

/** @param {string} path @param {import('../api/transport.js').CallOptions} options */
export async function getBlob(path, options) {
  const { body } = await request('files', path, { ...options, asBlob: true })
  return /** @type {Blob} */ (body)
}

/**
 * Where the content of a file is served, without a token. `sha256` pins it, so that it can be cached.
 * @param {string} path
 * @param {{ sha256?: string, download?: boolean }} [options]
 */
export function contentUrl(path, { sha256, download = false } = {}) {
  const query = [...(download ? ['download'] : []), ...(sha256 ? [`v=${sha256.slice(0, 16)}`] : [])]
  const search = query.length > 0 ? `?${query.join('&')}` : ''
  return `${urlOf('files')}/static/${encodePath(path)}${search}`
}
