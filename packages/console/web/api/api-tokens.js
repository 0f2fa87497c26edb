import { request } from './client.js'

/**
 * API tokens, alike in both services.
 * @import { ServiceName } from '../core/services.js'
 * @import { ApiToken, TokenInput } from './schema.d.ts'
 */

/** @param {ServiceName} service @param {AbortSignal} [signal] */
export async function listTokens(service, signal) {
  const { body } = await request(service, '/api/tokens', { signal })
  return /** @type {{ tokens: ApiToken[] }} */ (body).tokens
}

/**
 * @param {ServiceName} service
 * @param {TokenInput} token
 * @returns {Promise<ApiToken & { token: string }>} the only answer that holds the token itself
 */
export async function createToken(service, token) {
  const { body } = await request(service, '/api/tokens', { method: 'POST', json: token })
  return /** @type {ApiToken & { token: string }} */ (body)
}

/** @param {ServiceName} service @param {string | number} id */
export const revokeToken = (service, id) =>
  request(service, `/api/tokens/${encodeURIComponent(id)}`, { method: 'DELETE' })
