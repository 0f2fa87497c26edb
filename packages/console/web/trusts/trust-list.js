import { get, managesUsers, send } from '../api/client.js'
import { html } from '../core/view.js'
import { removalDialog } from '../ui/dialog.js'
import { formatDate } from '../ui/format.js'
import { rightsChips, ServiceLists } from '../ui/service-lists.js'
import { empty, page } from '../ui/states.js'
import { list } from '../ui/table.js'

/**
 * The workloads that log in with tokens of another issuer. They are added by a command. For admins without limits.
 * @extends {ServiceLists<Api.Trust>}
 */
class TrustList extends ServiceLists {
  offers = managesUsers

  /** @param {Api.ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    /** @type {Api.Trust[]} */
    const all = []
    for (let page = 1; ; page += 1) {
      const { trusts, pagination } = await get(service, '/api/trusts', { query: { page, page_size: 200 }, signal })
      all.push(...trusts)
      if (page >= pagination.total_pages) return all
    }
  }

  template() {
    const content = html`
      <p class="muted">A trust lets a workload, such as a job of GitHub or GitLab, log in without a secret.</p>
      ${this.sections((service, trusts) => this.#list(service, trusts))}`
    return page('Trusts', '', content)
  }

  /** @param {Api.ServiceName} service @param {Api.Trust[]} trusts */
  #list(service, trusts) {
    if (trusts.length === 0) return empty('key', 'No trusts yet', 'Add one with the command “npm run trusts -- add”.')
    const words = 'Its workloads are refused at once, and cannot log in any more.'
    const remove = (/** @type {Api.Trust} */ { id, name }) =>
      removalDialog('Remove', name, words, () => send(service, 'delete', '/api/trusts/{id}', { params: { id } }))
    return list(
      trusts,
      {
        Name: ({ name }) => html`<strong>${name}</strong>`,
        Workloads: ({ issuer, audience, claims }) => html`
          <code>${issuer}</code> for <code>${audience}</code>
          ${Object.entries(claims).map(([claim, value]) => html`<span class="chip">${claim} = ${value}</span> `)}`,
        Rights: rightsChips,
        Added: ({ created_at: at }) => formatDate(at),
      },
      (trust) => [trust.name, ['Remove', () => this.reloadAfter(remove(trust))]],
    )
  }
}

customElements.define('trust-list', TrustList)
