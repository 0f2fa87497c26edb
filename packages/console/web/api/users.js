import { request } from './client.js'
import { call } from './transport.js'

/**
 * Users and one's own account, alike in both services.
 * @import { ServiceName } from '../core/services.js'
 * @import { CreatedUser, NewUserInput, User, UserChange } from './schema.d.ts'
 */

/** All users of a service; admins only. @param {ServiceName} service @param {AbortSignal} [signal] */
export async function listUsers(service, signal) {
  /** @type {User[]} */
  const users = []
  for (let page = 1; ; page += 1) {
    const query = { page, page_size: 200 }
    const { body } = await request(service, '/api/users', { query, signal })
    const list = /** @type {{ users: User[], pagination: { total_pages: number } }} */ (body)
    users.push(...list.users)
    if (page >= list.pagination.total_pages) return users
  }
}

/** @param {ServiceName} service @param {NewUserInput} user @returns {Promise<CreatedUser>} with the invite, only now */
export async function createUser(service, user) {
  const { body } = await request(service, '/api/users', { method: 'POST', json: user })
  return /** @type {CreatedUser} */ (body)
}

/** @param {ServiceName} service @param {string} username @param {UserChange} change */
export const changeUser = (service, username, change) =>
  request(service, pathOf(username), { method: 'PATCH', json: change })

/** @param {ServiceName} service @param {string} username */
export const removeUser = (service, username) =>
  request(service, pathOf(username), { method: 'DELETE' })

/** @param {ServiceName} service @param {string} current @param {string} next */
export const changePassword = (service, current, next) =>
  request(service, '/api/auth/password', { method: 'POST', json: { current, new: next } })

/**
 * Sets the first password of an invited person, who has no token yet.
 * @param {ServiceName} service
 * @param {{ username: string, invite: string, new: string }} acceptance
 */
export const acceptInvite = (service, acceptance) =>
  call(service, '/api/auth/password', { method: 'POST', json: acceptance })

/** @param {string} username */
const pathOf = (username) => `/api/users/${encodeURIComponent(username)}`
