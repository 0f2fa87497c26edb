import { urlOf } from '../core/services.js'
import { request } from './client.js'
import { encodePath } from './static-service.js'

/**
 * Who reads files without a login: links, and folders that are private.
 * @import { AccessRule, CreatedLink, Link, NewLinkInput } from './schema.d.ts'
 */

const service = 'files'

/** Links to a path: one's own; admins see all. @param {string} path @param {AbortSignal} [signal] */
export async function listLinks(path, signal) {
  const { body } = await request(service, '/api/links', { query: { path, page_size: 200 }, signal })
  return /** @type {{ links: Link[] }} */ (body).links
}

/** @param {NewLinkInput} link @returns {Promise<CreatedLink>} with its URL, only now */
export async function createLink(link) {
  const { body } = await request(service, '/api/links', { method: 'POST', json: link })
  const made = /** @type {CreatedLink} */ (body)
  return { ...made, url: new URL(made.url, urlOf(service)).href }
}

/** @param {string} id */
export const revokeLink = (id) =>
  request(service, `/api/links/${encodeURIComponent(id)}`, { method: 'DELETE' })

/** For admins. @param {AbortSignal} [signal] */
export async function listAccessRules(signal) {
  const { body } = await request(service, '/api/access', { signal })
  return /** @type {{ rules: AccessRule[] }} */ (body).rules
}

/** @param {string} prefix @param {boolean} isPublic */
export const setAccessRule = (prefix, isPublic) =>
  request(service, `/api/access/${encodePath(prefix)}`, {
    method: 'PUT',
    json: { public: isPublic },
  })
