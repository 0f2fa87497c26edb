import { draftsName, get, readRegistrar, request, session } from '../api/client.js'
import { contentOf } from '../changes/change-item.js'
import { Resource } from '../core/view.js'
import { countEdits, emptyDraft, rebase, settle, toPatch } from './draft.js'
import { describe, diffZones } from './zone-diff.js'

/**
 * @import { CallOptions } from '../api/transport.js'
 * @import { View } from '../core/view.js'
 * @import { Changes, Conflict, Draft } from './draft.js'
 * @import { ZoneDiff } from './zone-diff.js'
 */

/**
 * Zones: reads with their age, and writes.
 * @typedef {{ zone: Api.Zone, etag: string, readAt: number }} TaggedZone `readAt`: when the registrar was asked
 * @typedef {{ dryRun: boolean, etag?: string, queue?: boolean, force?: boolean }} WriteOptions `queue`: answer at once and
 *   write when the registrar allows; `force`: also where records of unsupported types are lost
 * @typedef {{ zone?: Api.WrittenZone, queued?: number }} WriteAnswer a zone, or the id of a queued change
 */

/** @param {string} domain @param {{ fresh?: boolean, signal?: AbortSignal }} [options] fresh: not from the service's cache */
async function getZone(domain, { fresh = false, signal } = {}) {
  const { body, header, readAt } = await readRegistrar(pathOf(domain, 'hosts'), { fresh, signal })
  return { zone: /** @type {Api.Zone} */ (body), etag: header('etag') ?? '', readAt }
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
  return { zone: /** @type {Api.WrittenZone} */ (body) }
}

/** @param {string} domain @param {string} part */
const pathOf = (domain, part) => `/api/domains/${encodeURIComponent(domain)}/dns/${part}`

/** A zone is read again when it is looked at after this time. */
const staleMs = 15_000

/** @type {Changes & { count: number, proposed: number }} what is queued: how many changes, and the records of those of this page */
const nothingPending = { count: 0, proposed: 0, added: [], removed: [] }

/**
 * One domain: its zone as it was last read (`base`), the person's draft of it, what is queued (`pending`), and what
 * somebody else changed meanwhile (`conflict`). A draft that was made for an older zone is carried over to the one that is
 * read. Drafts stay in `sessionStorage` until they are applied, discarded or the person logs out.
 */
export class ZoneStore {
  domain = ''
  /** @type {Draft} */
  draft = emptyDraft
  pending = nothingPending
  /** @type {Api.FoundRecords['records']} as the service last knew them, where the zone cannot be read now */
  known = []
  /** @type {string[]} what a newer zone meant for the draft */
  notes = []
  /** @type {{ newer: TaggedZone, theirs: ZoneDiff, draft: Draft, notes: string[], conflicts: Conflict[] } | undefined} */
  conflict
  base
  #view
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer

  /** @param {View} view re-rendered at each change */
  constructor(view) {
    this.#view = view
    this.base = new Resource(view, (signal, fresh) => this.#load(signal, fresh))
  }

  /** @param {string} domain */
  open(domain) {
    this.domain = domain
    this.draft = drafts.get(domain)?.draft ?? emptyDraft
    this.notes = []
    this.pending = nothingPending
    this.known = []
    this.base.value = undefined
    this.base.error = undefined
  }

  /** Reads the zone, unless it was read a moment ago and nothing is queued. */
  refresh() {
    const { value, isLoading } = this.base
    const isNew = value && Date.now() - value.readAt < staleMs && this.pending.count === 0
    if (!isLoading && !isNew) void this.base.reload()
  }

  /** @param {AbortSignal} signal @param {boolean} fresh */
  async #load(signal, fresh) {
    const tagged = await getZone(this.domain, { signal, fresh }).catch(async (error) => {
      if (!this.base.value) await this.#readKnown(signal)
      throw error
    })
    await this.#readPending(signal)
    const kept = drafts.get(this.domain)
    if (kept && kept.base.etag !== tagged.etag) {
      const { draft, notes, conflicts } = rebase(this.draft, kept.base.zone, tagged.zone)
      this.draft = settle(draft, conflicts)
      this.notes = [
        ...notes,
        ...conflicts.map(
          ({ mine, theirs }) =>
            `${describe(theirs)} is there now: ${mine ? `yours, ${mine.address}, replaces it` : 'it is not deleted'}.`,
        ),
      ]
    }
    this.#keep(tagged)
    return tagged
  }

  // From the service's memory, not from the registrar.
  /** @param {AbortSignal} signal */
  async #readKnown(signal) {
    const query = { domain: this.domain, page_size: 200 }
    const { records } = await get('domains', '/api/records', { query, signal }).catch(() => none)
    this.known = records
  }

  // While something is queued, looks again: it changes the zone.
  /** @param {AbortSignal} signal */
  async #readPending(signal) {
    const query = { domain: this.domain, page_size: 20 }
    const { changes } = await get('domains', '/api/changes', { query, signal }).catch(() => none)
    const open = changes.filter(({ status }) => status === 'queued' || status === 'sending')
    const known = open.flatMap((each) => contentOf(each) ?? [])
    this.pending = {
      count: open.length,
      proposed: changes.filter(({ status }) => status === 'proposed').length,
      added: known.flatMap(({ added }) => added),
      removed: known.flatMap(({ removed }) => removed),
    }
    clearTimeout(this.#timer)
    if (open.length > 0 && !this.#view.signal.aborted)
      this.#timer = setTimeout(() => this.#view.isConnected && this.base.reload(), 3000)
  }

  /** @param {Draft} draft */
  change(draft) {
    this.draft = draft
    this.notes = []
    if (this.base.value) this.#keep(this.base.value)
    this.#view.update()
  }

  /** Sends the draft. @param {WriteOptions} options */
  send(options) {
    const { zone } = this.base.value ?? {}
    if (!zone) return Promise.reject(new Error('The zone was not read yet.'))
    const json = toPatch(this.draft, zone)
    return writeZone(this.domain, 'hosts', { method: 'PATCH', json }, options)
  }

  /** Somebody else changed the zone: reads it, so that the person sees what that means for the draft. */
  async meetConflict() {
    const newer = await getZone(this.domain, { fresh: true })
    const { zone } = this.base.value ?? newer
    const theirs = diffZones(zone.hosts, newer.zone.hosts)
    this.conflict = { newer, theirs, ...rebase(this.draft, zone, newer.zone) }
  }

  /** Goes on with the newer zone, and with what was chosen of each conflict. */
  resolveConflict() {
    if (!this.conflict) return
    const { newer, draft, conflicts } = this.conflict
    this.conflict = undefined
    this.base.value = newer
    this.change(settle(draft, conflicts))
  }

  /** @param {TaggedZone} base */
  #keep(base) {
    if (countEdits(this.draft) === 0) drafts.delete(this.domain)
    else drafts.set(this.domain, { base, draft: this.draft })
    if (drafts.size > 0) sessionStorage.setItem(draftsName, JSON.stringify([...drafts]))
    else sessionStorage.removeItem(draftsName)
  }
}

/** @type {{ changes: Api.LedgerChange[], records: Api.FoundRecords['records'] }} */
const none = { changes: [], records: [] }

/** @type {Map<string, { base: TaggedZone, draft: Draft }>} by domain */
const drafts = new Map(session.isEmpty ? [] : JSON.parse(sessionStorage.getItem(draftsName) ?? '[]'))

session.addEventListener('change', () => {
  if (session.isEmpty) drafts.clear()
})
