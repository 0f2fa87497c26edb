import { listTokens, revokeToken } from '../api/api-tokens.js'
import { html, nothing } from '../core/html.js'
import { offeredServices, titleOf } from '../core/services.js'
import { session } from '../core/session.js'
import { Resource, View } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { formatAge, formatDate } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { empty, show } from '../ui/states.js'
import { toast } from '../ui/toast.js'
import { openTokenDialog } from './token-dialog.js'

/**
 * @import { ApiToken } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/** The person's API tokens at both services: make, copy once, revoke. */
class TokenList extends View {
  /** @type {{ service: ServiceName, tokens: Resource<ApiToken[]> }[]} */
  #lists = []

  opened() {
    session.addEventListener('change', () => this.#load(), { signal: this.signal })
    this.#load()
  }

  #load() {
    this.#lists = offeredServices()
      .filter((service) => session.loginOf(service))
      .map((service) => ({
        service,
        tokens: new Resource(this, (signal) => listTokens(service, signal)),
      }))
    for (const { tokens } of this.#lists) void tokens.reload()
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header">
          <h1>API tokens</h1>
          <button class="button primary" data-key="n" @click=${this.#create}>${icon('plus')} New token</button>
        </header>
        <p class="muted">Tokens are for programs and devices: each has its own limits, and can be revoked at any time.</p>
        ${this.#lists.map(
          ({ service, tokens }) => html`
            <section aria-label=${titleOf(service)} class="token-section">
              <h2>${titleOf(service)}</h2>
              ${show(tokens, (list) => this.#table(service, list), 2)}
            </section>`,
        )}
      </div>`
  }

  /** @param {ServiceName} service @param {ApiToken[]} tokens */
  #table(service, tokens) {
    if (tokens.length === 0)
      return empty({
        icon: 'key',
        title: 'No tokens yet',
        text: 'Make one for a router, a certificate client or a script.',
      })
    return html`
      <div class="table-frame">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">May</th>
              <th scope="col">Last used</th>
              <th scope="col">Expires</th>
              <th scope="col"><span class="sr-only">Actions</span></th>
            </tr>
          </thead>
          <tbody>
            ${tokens.map(
              (token) => html`
                <tr>
                  <th scope="row"><strong>${token.name}</strong> <code class="muted">…${token.hint}</code></th>
                  <td>${rightsOf(token)}</td>
                  <td class="muted">${token.last_used_at ? formatAge(token.last_used_at) : 'never'}</td>
                  <td class="muted">${token.expires_at ? formatDate(token.expires_at) : 'never'}</td>
                  <td class="actions">
                    <button class="button" aria-label="Revoke ${token.name}" @click=${() => this.#revoke(service, token)}>Revoke</button>
                  </td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>`
  }

  #create = async () => {
    if (await openTokenDialog()) this.#load()
  }

  /** @param {ServiceName} service @param {ApiToken} token */
  async #revoke(service, { id, name }) {
    const isDone = await confirmDialog({
      title: `Revoke ${name}?`,
      body: html`<p>Programs that use it are refused at once. This cannot be undone.</p>`,
      confirm: 'Revoke',
      danger: true,
      action: () => revokeToken(service, id),
    })
    if (!isDone) return
    toast(`${name} revoked`)
    this.#load()
  }
}

/** @param {ApiToken} token */
function rightsOf({ role, domains, records, networks }) {
  return html`
    ${role ? html`<span class="chip">${role}</span>` : nothing}
    ${domains?.map((domain) => html`<span class="chip accent">${domain}</span>`) ?? nothing}
    ${records?.map(({ name, types }) => html`<span class="chip">${name} ${types.join(' ')}</span>`) ?? nothing}
    ${networks?.map((network) => html`<span class="chip">from ${network}</span>`) ?? nothing}`
}

customElements.define('token-list', TokenList)
