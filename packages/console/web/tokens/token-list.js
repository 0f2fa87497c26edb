import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { confirmDialog } from '../ui/dialog.js'
import { formatAge, formatDate } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { ServiceLists } from '../ui/service-lists.js'
import { empty } from '../ui/states.js'
import { table } from '../ui/table.js'
import { toast } from '../ui/toast.js'
import { openTokenDialog } from './token-dialog.js'

/**
 * @import { ApiToken } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/**
 * The person's API tokens at both services: make, copy once, revoke.
 * @extends {ServiceLists<ApiToken>}
 */
class TokenList extends ServiceLists {
  /** @param {ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    return (await get(service, '/api/tokens', { signal })).tokens
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header">
          <h1>API tokens</h1>
          <button class="button primary" data-key="n" @click=${this.#create}>${icon('plus')} New token</button>
        </header>
        <p class="muted">Tokens are for programs and devices: each has its own limits, and can be revoked at any time.</p>
        ${this.sections((service, tokens) => this.#table(service, tokens))}
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
    const rows = tokens.map(
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
    )
    return table(['Name', 'May', 'Last used', 'Expires', ''], rows)
  }

  #create = async () => {
    if (await openTokenDialog()) this.reload()
  }

  /** @param {ServiceName} service @param {ApiToken} token */
  async #revoke(service, { id, name }) {
    const isDone = await confirmDialog({
      title: `Revoke ${name}?`,
      body: html`<p>Programs that use it are refused at once. This cannot be undone.</p>`,
      confirm: 'Revoke',
      danger: true,
      action: () => send(service, 'delete', '/api/tokens/{id}', { params: { id } }),
    })
    if (!isDone) return
    toast(`${name} revoked`)
    this.reload()
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
