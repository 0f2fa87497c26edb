import { request } from './client.js'

/**
 * Zones: reads with their age, and writes.
 * @import { WrittenZone, Zone } from './schema.d.ts'
 * @import { CallOptions } from './transport.js'
 * @typedef {{ zone: Zone, etag: string, readAt: number }} TaggedZone `readAt`: when the registrar was asked
 * @typedef {{ dryRun: boolean, etag?: string, queue?: boolean, force?: boolean }} WriteOptions `queue`: answer at once and
 *   write when the registrar allows; `force`: also where records of unsupported types are lost
 * @typedef {{ zone?: WrittenZone, queued?: number }} WriteAnswer a zone, or the id of a queued change
 */

/**
 * @param {string} domain
 * @param {{ fresh?: boolean, signal?: AbortSignal }} [options] fresh: not from the service's cache
 * @returns {Promise<TaggedZone>}
 */
export async function getZone(domain, { fresh = false, signal } = {}) {
  const headers = fresh ? { 'cache-control': 'no-cache' } : {}
  const answer = await request('domains', pathOf(domain, 'hosts'), { headers, signal })
  const readAt = Date.now() - Number(answer.header('age') ?? 0) * 1000
  return { zone: /** @type {Zone} */ (answer.body), etag: answer.header('etag') ?? '', readAt }
}

/**
 * @param {string} domain
 * @param {string} part of the zone's paths: `hosts`, `zonefile`, `history/7/revert`
 * @param {CallOptions} message
 * @param {WriteOptions} options
 * @returns {Promise<WriteAnswer>}
 */
export async function writeZone(domain, part, message, { dryRun, etag, queue, force }) {
  const { status, body, header } = await request('domains', pathOf(domain, part), {
    ...message,
    query: { dry_run: dryRun ? 'true' : undefined, force: force ? 'true' : undefined },
    headers: {
      ...message.headers,
      'if-match': etag,
      prefer: queue ? 'respond-async' : undefined,
    },
  })
  if (status === 202) return { queued: Number(header('location')?.split('/').at(-1)) }
  return { zone: /** @type {WrittenZone} */ (body) }
}

/** @param {string} domain @param {string} part */
const pathOf = (domain, part) => `/api/domains/${encodeURIComponent(domain)}/dns/${part}`
