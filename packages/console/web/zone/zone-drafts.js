import { session } from '../core/session.js'
import { countEdits } from './draft.js'

/**
 * Drafts by domain, in memory: they stay while the person looks at another view, until logout. Leaving the page with
 * one asks first.
 * @import { TaggedZone } from '../api/domain-service.js'
 * @import { Draft } from './draft.js'
 * @type {Map<string, { base: TaggedZone, draft: Draft }>}
 */
const drafts = new Map()

/** @param {string} domain */
export const draftOf = (domain) => drafts.get(domain)

/** @param {string} domain @param {TaggedZone} base @param {Draft} draft */
export function keepDraft(domain, base, draft) {
  if (countEdits(draft) === 0) drafts.delete(domain)
  else drafts.set(domain, { base, draft })
}

addEventListener('beforeunload', (event) => {
  if (drafts.size > 0) event.preventDefault()
})

session.addEventListener('change', () => {
  if (session.isEmpty) drafts.clear()
})
