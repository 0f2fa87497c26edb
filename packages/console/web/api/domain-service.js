import { request } from './client.js'
import { call } from './transport.js'

/**
 * The public API of the domain service.
 * @import { DomainInfo, DomainList, Health, History, HistoryDetail, LedgerChange, LedgerChanges, RegistrarState,
 *   WrittenZone, Zone, ZonePatch } from './schema.d.ts'
 * @typedef {{ zone: Zone, etag: string, readAt: number }} TaggedZone `readAt`: when the registrar was asked
 * @typedef {{ dryRun: boolean, etag?: string, queue?: boolean, force?: boolean }} WriteOptions `queue`: answer at once and
 *   write when the registrar allows; `force`: also where records of unsupported types are lost
 * @typedef {{ zone?: WrittenZone, queuedAt?: string }} WriteAnswer a zone, or the address of a queued change
 */

const service = 'domains'

/** @param {Record<string, string | number | undefined>} query @param {AbortSignal} [signal] */
export async function listDomains(query, signal) {
  const { body } = await request(service, '/api/domains', { query, signal })
  return /** @type {DomainList} */ (body)
}

/** @param {string} domain @param {AbortSignal} [signal] */
export async function getDomain(domain, signal) {
  const { body } = await request(service, `${pathOf(domain)}/info`, { signal })
  return /** @type {DomainInfo} */ (body)
}

/**
 * @param {string} domain
 * @param {{ fresh?: boolean, signal?: AbortSignal }} [options] fresh: not from the service's cache
 * @returns {Promise<TaggedZone>}
 */
export async function getZone(domain, { fresh = false, signal } = {}) {
  const headers = fresh ? { 'cache-control': 'no-cache' } : {}
  const answer = await request(service, `${pathOf(domain)}/dns/hosts`, { headers, signal })
  const readAt = Date.now() - Number(answer.header('age') ?? 0) * 1000
  return { zone: /** @type {Zone} */ (answer.body), etag: answer.header('etag') ?? '', readAt }
}

/** @param {string} domain @param {ZonePatch} patch @param {WriteOptions} options */
export const patchZone = (domain, patch, options) =>
  write(`${pathOf(domain)}/dns/hosts`, { method: 'PATCH', json: patch }, options)

/** @param {string} domain @param {string} text @param {WriteOptions} options */
export const putZoneFile = (domain, text, options) =>
  write(
    `${pathOf(domain)}/dns/zonefile`,
    { method: 'PUT', body: text, headers: { 'content-type': 'text/dns' } },
    options,
  )

/** @param {string} domain */
export async function getZoneFile(domain) {
  const headers = { accept: 'text/dns' }
  const { body } = await request(service, `${pathOf(domain)}/dns/zonefile`, { headers })
  return String(body)
}

/** @param {string} domain @param {number} page @param {AbortSignal} [signal] */
export async function listHistory(domain, page, signal) {
  const query = { page, page_size: 50 }
  const { body } = await request(service, `${pathOf(domain)}/dns/history`, { query, signal })
  return /** @type {History} */ (body)
}

/** @param {string} domain @param {string} id @param {AbortSignal} [signal] */
export async function getHistoryEntry(domain, id, signal) {
  const { body } = await request(service, `${pathOf(domain)}/dns/history/${id}`, { signal })
  return /** @type {HistoryDetail} */ (body)
}

/**
 * @param {string} domain
 * @param {number} id
 * @param {'restore' | 'revert'} how the zone before that change, or that change alone taken back
 * @param {WriteOptions} options
 */
export const takeBack = (domain, id, how, options) =>
  write(`${pathOf(domain)}/dns/history/${id}/${how}`, { method: 'POST' }, options)

/** @param {Record<string, string | number | undefined>} query @param {AbortSignal} [signal] */
export async function listChanges(query, signal) {
  const { body } = await request(service, '/api/changes', { query, signal })
  return /** @type {LedgerChanges} */ (body)
}

/** @param {number} id @param {AbortSignal} [signal] */
export async function getChange(id, signal) {
  const { body } = await request(service, `/api/changes/${id}`, { signal })
  return /** @type {LedgerChange} */ (body)
}

/** @param {number} id */
export const cancelChange = (id) => request(service, `/api/changes/${id}`, { method: 'DELETE' })

/** @param {number} id @param {'approve' | 'reject'} decision @param {string} reason of a rejection */
export const decideProposal = (id, decision, reason) =>
  request(service, `/api/changes/${id}/${decision}`, {
    method: 'POST',
    json: decision === 'reject' && reason ? { reason } : undefined,
  })

/** @param {AbortSignal} [signal] */
export async function getRegistrar(signal) {
  const { body } = await request(service, '/api/registrar', { signal })
  return /** @type {RegistrarState} */ (body)
}

/** Public: needs no login. @param {AbortSignal} [signal] */
export async function getHealth(signal) {
  const { body } = await call(service, '/health', { signal })
  return /** @type {Health} */ (body)
}

/**
 * @param {string} path
 * @param {import('./transport.js').CallOptions} message
 * @param {WriteOptions} options
 * @returns {Promise<WriteAnswer>}
 */
async function write(path, message, { dryRun, etag, queue, force }) {
  const { status, body, header } = await request(service, path, {
    ...message,
    query: { dry_run: dryRun ? 'true' : undefined, force: force ? 'true' : undefined },
    headers: {
      ...message.headers,
      'if-match': etag,
      prefer: queue ? 'respond-async' : undefined,
    },
  })
  if (status === 202) return { queuedAt: header('location') ?? '' }
  return { zone: /** @type {WrittenZone} */ (body) }
}

/** @param {string} domain */
const pathOf = (domain) => `/api/domains/${encodeURIComponent(domain)}`
