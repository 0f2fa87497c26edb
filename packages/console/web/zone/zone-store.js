import { getZone } from '../api/domain-service.js'
import { draftsName, session } from '../core/session.js'
import { Resource } from '../core/view.js'
import { countEdits, describe, emptyDraft, rebase, settle } from './draft.js'

/**
 * @import { TaggedZone } from '../api/domain-service.js'
 * @import { View } from '../core/view.js'
 * @import { Draft } from './draft.js'
 */

/** A zone is read again when it is looked at after this time. */
const staleMs = 15_000

/**
 * The zone of one domain as it was last read, and the person's draft of it. A draft that was made for an older zone is
 * carried over to the one that is read. Drafts stay in `sessionStorage` until they are applied, discarded or the person
 * logs out.
 */
export class ZoneStore {
  domain = ''
  /** @type {Draft} */
  draft = emptyDraft
  /** @type {string[]} what a newer zone meant for the draft */
  notes = []
  zone
  #view
  #isFresh = false

  /** @param {View} view re-rendered at each change */
  constructor(view) {
    this.#view = view
    this.zone = new Resource(view, (signal) => this.#load(signal))
  }

  /** @param {string} domain */
  open(domain) {
    this.domain = domain
    this.draft = draftOf(domain)?.draft ?? emptyDraft
    this.notes = []
    this.zone.value = undefined
    void this.zone.reload()
  }

  /** Reads the zone again, if it was read a while ago. */
  refresh() {
    const { value, isLoading } = this.zone
    if (value && !isLoading && Date.now() - value.readAt > staleMs) void this.zone.reload()
  }

  /** Reads the zone from the registrar. */
  readNow() {
    this.#isFresh = true
    void this.zone.reload()
  }

  /** @param {AbortSignal} signal */
  async #load(signal) {
    const fresh = this.#isFresh
    this.#isFresh = false
    const tagged = await getZone(this.domain, { signal, fresh })
    const kept = draftOf(this.domain)
    if (kept && kept.base.etag !== tagged.etag) {
      const { draft, notes, conflicts } = rebase(this.draft, kept.base.zone, tagged.zone)
      this.draft = conflicts.reduce((each, conflict) => settle(each, conflict, 'mine'), draft)
      this.notes = [
        ...notes,
        ...conflicts.map(
          ({ mine, theirs }) =>
            `${describe(theirs)} is there now: yours, ${mine.address}, replaces it.`,
        ),
      ]
    }
    keepDraft(this.domain, tagged, this.draft)
    return tagged
  }

  /** @param {Draft} draft @param {TaggedZone} [base] a newer zone that it was made for */
  change(draft, base) {
    this.draft = draft
    this.notes = []
    if (base) this.zone.value = base
    if (this.zone.value) keepDraft(this.domain, this.zone.value, draft)
    this.#view.update()
  }

  /** The draft was carried out, or queued. */
  applied() {
    this.change(emptyDraft)
    return this.zone.reload()
  }
}

/** @typedef {{ base: TaggedZone, draft: Draft }} KeptDraft */

/** @type {Map<string, KeptDraft>} by domain */
const drafts = new Map(readStored())

/** @param {string} domain */
const draftOf = (domain) => drafts.get(domain)

/** @param {string} domain @param {TaggedZone} base @param {Draft} draft */
function keepDraft(domain, base, draft) {
  if (countEdits(draft) === 0) drafts.delete(domain)
  else drafts.set(domain, { base, draft })
  const kept = [...drafts].map(([name, each]) => [
    name,
    { ...each, draft: { ...each.draft, updated: [...each.draft.updated] } },
  ])
  if (kept.length > 0) sessionStorage.setItem(draftsName, JSON.stringify(kept))
  else sessionStorage.removeItem(draftsName)
}

/** @returns {[string, KeptDraft][]} */
function readStored() {
  if (session.isEmpty) return []
  /** @type {[string, { base: TaggedZone, draft: any }][]} */
  const stored = JSON.parse(sessionStorage.getItem(draftsName) ?? '[]')
  return stored.map(([name, { base, draft }]) => [
    name,
    { base, draft: { ...draft, updated: new Map(draft.updated) } },
  ])
}

session.addEventListener('change', () => {
  if (!session.isEmpty) return
  drafts.clear()
  sessionStorage.removeItem(draftsName)
})
