import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { poll } from '../core/poll.js'
import { hrefTo } from '../core/router.js'
import { isAdmin, mayEdit, session } from '../core/session.js'
import { Resource, RouteView } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { inputHandler, optionsOf } from '../ui/form.js'
import { pager } from '../ui/pager.js'
import { empty, notice, show } from '../ui/states.js'
import { filterChips } from '../ui/table.js'
import { toUnicode } from '../ui/unicode.js'
import { changeItem, states } from './change-item.js'
import { openProposal } from './proposal-dialog.js'

/** @import { LedgerChange, LedgerChanges } from '../api/schema.d.ts' */

/** Changes of all domains with their state, live. Queued ones can be cancelled, proposed ones approved or rejected. */
class ChangeQueue extends RouteView {
  #changes = new Resource(this, (signal) => {
    const query = { ...this.values('status', 'domain', 'by', 'page'), page_size: 50 }
    return get('domains', '/api/changes', { query, signal })
  })

  opened() {
    super.opened()
    poll(
      () => this.#changes.reload(),
      () => (this.#isMoving() ? 2000 : 15_000),
      this.signal,
    )
  }

  reload() {
    return this.#changes.reload()
  }

  #isMoving() {
    return this.#changes.value?.changes.some(
      ({ status, held }) => (status === 'queued' && !held) || status === 'sending',
    )
  }

  template() {
    const { status = '' } = this.values('status')
    /** @type {[string, string][]} */
    const options = Object.entries(states).map(([value, [words]]) => [value, words])
    return html`
      <div class="view">
        <header class="view-header">
          <h1>Changes</h1>
          <div class="toolbar">
            ${filterChips(this, ['domain', 'by'])}
            <select class="short" aria-label="State" .value=${status} @change=${inputHandler((value) => this.open({ status: value || undefined }))}>
              ${optionsOf([['', 'All states'], ...options], status)}
            </select>
          </div>
        </header>
        ${show(this.#changes, (value) => this.#list(value), 8)}
      </div>`
  }

  /** @param {LedgerChanges} list */
  #list({ changes, pagination }) {
    if (changes.length === 0) {
      return empty({
        icon: 'queue',
        title: 'No changes here',
        text: 'Changes of records appear here with their state, from the queue to the registrar’s confirmation.',
      })
    }
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
              <button class="button" @click=${() => this.#endHold('release')}>Carry them out</button>
              <button class="button" @click=${() => this.#endHold('cancel')}>Delete them</button>
            </div>`
            : nothing
        }`,
      'warn',
    )
  }

  /** @param {'release' | 'cancel'} how */
  async #endHold(how) {
    const isRelease = how === 'release'
    await confirmDialog({
      title: isRelease ? 'Carry out the held changes?' : 'Delete the held changes?',
      body: html`<p>All changes that are held ${isRelease ? 'are sent to the registrar, each on the zone as it is then' : 'are cancelled, and nothing of them is sent'}.</p>`,
      confirm: isRelease ? 'Carry them out' : 'Delete them',
      danger: !isRelease,
      action: () =>
        isRelease
          ? send('domains', 'post', '/api/changes/held/release')
          : send('domains', 'delete', '/api/changes/held'),
    })
    await this.#changes.reload()
  }

  /** @param {LedgerChange} change */
  #actions(change) {
    if (!mayEdit('domains')) return nothing
    if (change.status === 'queued')
      return html`<button class="button" @click=${() => this.#cancel(change)}>Cancel</button>`
    const isOwn = change.by === session.loginOf('domains')?.username
    return change.status === 'proposed' && !isOwn
      ? html`<button class="button primary" @click=${() => this.#decide(change)}>Review</button>`
      : nothing
  }

  /** @param {LedgerChange} change */
  async #decide(change) {
    if (await openProposal(change)) await this.#changes.reload()
  }

  /** @param {LedgerChange} change */
  async #cancel({ id, domain }) {
    await confirmDialog({
      title: 'Cancel this change?',
      body: html`<p>The change to <strong>${domain}</strong> was not sent yet, and will not be.</p>`,
      confirm: 'Cancel the change',
      danger: true,
      action: () => send('domains', 'delete', '/api/changes/{id}', { params: { id } }),
    })
    await this.#changes.reload()
  }
}

/** @param {LedgerChange} change */
const titleOf = ({ domain }) =>
  html`<a href=${hrefTo(['domains', domain], { tab: 'history' })}>${toUnicode(domain)}</a>`

customElements.define('change-queue', ChangeQueue)
