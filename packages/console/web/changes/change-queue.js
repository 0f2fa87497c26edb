import { cancelChange, listChanges } from '../api/domain-service.js'
import { html, nothing } from '../core/html.js'
import { poll } from '../core/poll.js'
import { currentRoute, hrefTo, navigate, routeChanges } from '../core/router.js'
import { mayEdit, session } from '../core/session.js'
import { Resource, View } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { inputHandler, optionsOf } from '../ui/form.js'
import { formatAge, formatTime } from '../ui/format.js'
import { pager } from '../ui/pager.js'
import { empty, show } from '../ui/states.js'
import { moveBetweenRows } from '../ui/table.js'
import { openProposal } from './proposal-dialog.js'

/** @import { LedgerChange, LedgerChanges } from '../api/schema.d.ts' */

/** What each state means, in words. */
const states = {
  proposed: ['Waiting for an approval', 'accent'],
  queued: ['Waiting for the registrar', 'accent'],
  sending: ['Being sent', 'accent'],
  confirmed: ['Done', 'good'],
  refused: ['Refused', 'bad'],
  unconfirmed: ['Sent, not confirmed yet', 'warn'],
  cancelled: ['Cancelled', ''],
  rejected: ['Rejected', 'bad'],
}

/** Changes of all domains with their state, live. Queued ones can be cancelled. */
class ChangeQueue extends View {
  #changes = new Resource(this, (signal) => listChanges(this.#query(), signal))

  opened() {
    routeChanges.addEventListener('change', () => this.#follow(), { signal: this.signal })
    poll(
      () => this.#changes.reload(),
      () => (this.#isMoving() ? 2000 : 15_000),
      this.signal,
    )
  }

  #follow() {
    if (currentRoute().segments[0] === 'changes') void this.#changes.reload()
  }

  #isMoving() {
    return this.#changes.value?.changes.some(
      ({ status }) => status === 'queued' || status === 'sending',
    )
  }

  #query() {
    const { query } = currentRoute()
    return {
      status: query.get('status') ?? undefined,
      domain: query.get('domain') ?? undefined,
      by: query.get('by') ?? undefined,
      page: query.get('page') ?? '1',
      page_size: 50,
    }
  }

  /** @param {Record<string, string | undefined>} changes */
  #open(changes) {
    navigate(
      hrefTo(['changes'], {
        ...Object.fromEntries(currentRoute().query),
        page: undefined,
        ...changes,
      }),
    )
  }

  template() {
    const { status = '' } = this.#query()
    return html`
      <div class="view">
        <header class="view-header">
          <h1>Changes</h1>
          <div class="toolbar">
            ${this.#filterChips()}
            <select class="short" aria-label="State" .value=${status} @change=${inputHandler((value) => this.#open({ status: value || undefined }))}>
              ${optionsOf([['', 'All states'], ...Object.keys(states)], status)}
            </select>
          </div>
        </header>
        ${show(this.#changes, (value) => this.#table(value), 8)}
      </div>`
  }

  #filterChips() {
    const { domain, by } = this.#query()
    /** @type {['domain' | 'by', string | undefined][]} */
    const filters = [
      ['domain', domain],
      ['by', by],
    ]
    return filters.map(([name, value]) =>
      value
        ? html`<button class="button" aria-label="Remove the filter ${value}" @click=${() => this.#open({ [name]: undefined })}>${value} ×</button>`
        : nothing,
    )
  }

  /** @param {LedgerChanges} list */
  #table({ changes, pagination }) {
    if (changes.length === 0) {
      return empty({
        icon: 'queue',
        title: 'No changes here',
        text: 'Changes of records appear here with their state, from the queue to the registrar’s confirmation.',
      })
    }
    return html`
      <div class="table-frame" aria-live="polite" @keydown=${moveBetweenRows}>
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Domain</th>
              <th scope="col">What</th>
              <th scope="col">State</th>
              <th scope="col">By</th>
              <th scope="col">When</th>
              <th scope="col"><span class="sr-only">Actions</span></th>
            </tr>
          </thead>
          <tbody>${changes.map((change) => this.#row(change))}</tbody>
        </table>
      </div>
      ${pager(pagination, (page) => this.#open({ page: String(page) }))}`
  }

  /** @param {LedgerChange} change */
  #row(change) {
    const [words, tone] = states[change.status] ?? [change.status, '']
    return html`
      <tr>
        <th scope="row"><a data-row href=${hrefTo(['domains', change.domain], { tab: 'history' })}>${change.domain}</a></th>
        <td>${countRecords(change)}</td>
        <td>
          <span class="chip ${tone}">${words}</span>
          ${change.problem ? html`<p class="note">${change.problem.detail}</p>` : nothing}
        </td>
        <td>${change.by ?? 'outside'} ${change.approved_by ? html`<span class="muted">approved by ${change.approved_by}</span>` : nothing}</td>
        <td class="muted"><time datetime=${change.at} title=${formatTime(change.at)}>${formatAge(change.at)}</time></td>
        <td class="actions">
          ${
            change.status === 'proposed' &&
            mayEdit('domains') &&
            change.by !== session.loginOf('domains')?.username
              ? html`<button class="button primary" @click=${() => this.#decide(change)}>Review</button>`
              : nothing
          }
          ${
            change.status === 'queued' && mayEdit('domains')
              ? html`<button class="button" @click=${() => this.#cancel(change)}>Cancel</button>`
              : nothing
          }
        </td>
      </tr>`
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
      action: () => cancelChange(id),
    })
    await this.#changes.reload()
  }
}

/** @param {LedgerChange} change */
function countRecords({ changes }) {
  if (!changes) return html`<span class="muted">—</span>`
  const { added, removed, omitted = { added: 0, removed: 0 } } = changes
  return `+${added.length + omitted.added} −${removed.length + omitted.removed}`
}

customElements.define('change-queue', ChangeQueue)
