import { get, isAdmin, mayEdit, send, session } from '../api/client.js'
import { ApiError } from '../api/transport.js'
import { hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { confirmDialog, removalDialog } from '../ui/dialog.js'
import { formField, select } from '../ui/form.js'
import { toUnicode } from '../ui/format.js'
import { empty, notice, page, show, toast } from '../ui/states.js'
import { filterChips, pager } from '../ui/table.js'
import { pairChanges } from '../zone/zone-diff.js'
import { changeItem, diffList, states, summarizeDiff } from './change-item.js'

/** Changes of all domains with their state, live. Queued ones can be cancelled, and proposed ones by their author; others approve or reject these. */
class ChangeQueue extends RouteView {
  #changes = new Resource(this, async (signal) => {
    const query = { ...this.values('status', 'domain', 'by', 'page'), page_size: 50 }
    const list = await get('domains', '/api/changes', { query, signal })
    const isMoving = list.changes.some(({ status, held }) => (status === 'queued' && !held) || status === 'sending')
    this.pollMs = isMoving ? 2000 : 15_000
    return list
  })
  pollMs = 15_000

  template() {
    const { status = '' } = this.values('status')
    const options = Object.entries(states).map(([value, [words]]) => [value, words])
    return page(
      'Changes',
      html`${filterChips(this, ['domain', 'by'])}
        ${select('State', [['', 'All states'], ...options], status, (value) => this.open({ status: value }))}`,
      show(this.#changes, (value) => this.#list(value), 8),
    )
  }

  /** @param {Api.LedgerChanges} list */
  #list({ changes, pagination }) {
    const hint = 'Changes of records appear here with their state, from the queue to the registrar’s confirmation.'
    if (changes.length === 0) return empty('queue', 'No changes here', hint)
    return html`
      ${changes.some(({ held }) => held) ? this.#held() : nothing}
      <ol class="timeline" aria-live="polite">
        ${changes.map((change) => changeItem(change, { title: titleOf(change), actions: this.#actions(change) }))}
      </ol>
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  #held() {
    return notice(
      html`<p><strong>Changes that were queued in a restored backup are held.</strong> They may have been carried out after
          the backup was made: look at them, then let an admin decide.</p>
        ${
          isAdmin('domains')
            ? html`<div class="button-row">
              <button class="button" @click=${() => this.reloadAfter(this.#release())}>Carry them out</button>
              <button class="button" @click=${() => this.reloadAfter(this.#delete())}>Delete them</button>
            </div>`
            : nothing
        }`,
      'warn',
    )
  }

  #release = () =>
    confirmDialog({
      title: 'Carry out the held changes?',
      body: html`<p>All changes that are held are sent to the registrar, each on the zone as it is then.</p>`,
      confirm: 'Carry them out',
      action: () => send('domains', 'post', '/api/changes/held/release'),
    })

  #delete = () =>
    removalDialog('Delete', 'the held changes', 'They are cancelled, and nothing of them is sent.', () =>
      send('domains', 'delete', '/api/changes/held'),
    )

  /** @param {Api.LedgerChange} change */
  #actions(change) {
    if (!mayEdit('domains')) return nothing
    const isOwn = change.by === session.loginOf('domains')?.username
    if (change.status === 'queued' || (change.status === 'proposed' && isOwn))
      return html`<button class="button" @click=${() => this.reloadAfter(cancel(change))}>Cancel</button>`
    return change.status === 'proposed'
      ? html`<button class="button primary" @click=${() => this.reloadAfter(openProposal(change))}>Review</button>`
      : nothing
  }
}

/** @param {Api.LedgerChange} change */
const cancel = ({ id, domain }) =>
  confirmDialog({
    title: 'Cancel this change?',
    body: html`<p>The change to <strong>${domain}</strong> was not sent yet, and will not be.</p>`,
    confirm: 'Cancel the change',
    danger: true,
    action: () => send('domains', 'delete', '/api/changes/{id}', { params: { id } }),
  })

/** @param {Api.LedgerChange} change */
const titleOf = ({ domain }) =>
  html`<a href=${hrefTo(['domains', domain], { tab: 'history' })}>${toUnicode(domain)}</a>`

customElements.define('change-queue', ChangeQueue)

/**
 * Shows what somebody proposes, to be approved or rejected by another person.
 * @param {Api.LedgerChange} change
 * @returns {Promise<boolean>} whether it was decided
 */
function openProposal({ id, by, domain, changes }) {
  let shown = changes
  const form = { reason: '' }
  const decide = (/** @type {'approve' | 'reject'} */ decision) => async () => {
    const json = decision === 'reject' && form.reason ? form : undefined
    try {
      await send('domains', 'post', `/api/changes/{id}/${decision}`, { params: { id }, json })
    } catch (error) {
      if (error instanceof ApiError) shown = error.body.changes ?? shown
      throw error
    }
    toast(decision === 'approve' ? 'Approved: it is queued' : 'Rejected')
  }
  return confirmDialog({
    title: `${by} proposes a change of ${domain}`,
    confirm: 'Approve',
    other: ['Reject', decide('reject')],
    action: decide('approve'),
    // Enter in the field of a reason must not approve.
    isReady: () => form.reason === '',
    body: (/** @type {() => void} */ update) => {
      const diff = pairChanges(shown ?? { added: [], removed: [] })
      return html`
        <p class="summary"><strong>${summarizeDiff(diff)}</strong></p>
        ${diffList(diff)} ${formField(form, 'reason', 'Reason, if you reject it', { onChange: update })}`
    },
  })
}
