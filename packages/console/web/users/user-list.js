import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { isAdmin, session } from '../core/session.js'
import { confirmDialog } from '../ui/dialog.js'
import { formatAge, formatDate } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { ServiceLists } from '../ui/service-lists.js'
import { table } from '../ui/table.js'
import { toast } from '../ui/toast.js'
import { openUserDialog } from './user-dialog.js'

/**
 * @import { User } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/**
 * Who may use the services: add with an invite, change rights, remove. For admins.
 * @extends {ServiceLists<User>}
 */
class UserList extends ServiceLists {
  /** @param {ServiceName} service */
  offers(service) {
    return isAdmin(service)
  }

  /** @param {ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    /** @type {User[]} */
    const all = []
    for (let page = 1; ; page += 1) {
      const query = { page, page_size: 200 }
      const { users, pagination } = await get(service, '/api/users', { query, signal })
      all.push(...users)
      if (page >= pagination.total_pages) return all
    }
  }

  /** One, where both services have the same users. */
  #shown() {
    const [first, second] = this.lists
    const isShared = first?.items.value && namesOf(first) === namesOf(second ?? first)
    return first && isShared ? [first] : this.lists
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header">
          <h1>Users</h1>
        </header>
        <p class="muted">Changes count at once, everywhere. Who is removed is logged out, and their API tokens end.</p>
        ${this.sections(
          (service, users) =>
            table(
              ['Name', 'May', 'Last login', 'Added', ''],
              users.map((user) => this.#row(service, user)),
            ),
          (service) =>
            html`<button class="button primary" @click=${() => this.#edit(service)}>${icon('plus')} New user</button>`,
          this.#shown(),
        )}
      </div>`
  }

  /** @param {ServiceName} service @param {User} user */
  #row(service, user) {
    const {
      username,
      role,
      domains,
      folders,
      writes,
      created_at: added,
      last_login_at: seen,
    } = user
    const isSelf = username === session.loginOf(service)?.username
    return html`
      <tr>
        <th scope="row"><strong>${username}</strong> ${isSelf ? html`<span class="muted">(you)</span>` : nothing}</th>
        <td>
          <span class="chip">${role}</span>
          ${[...(domains ?? []), ...(folders ?? []), ...(writes ? ['proposes'] : [])].map((limit) => html`<span class="chip accent">${limit}</span>`)}
        </td>
        <td class="muted">${seen ? formatAge(seen) : 'never'}</td>
        <td class="muted">${formatDate(added)}</td>
        <td class="actions">
          <button class="button" aria-label="Change ${username}" @click=${() => this.#edit(service, user)}>Change</button>
          ${isSelf ? nothing : html`<button class="button" aria-label="Remove ${username}" @click=${() => this.#remove(service, username)}>Remove</button>`}
        </td>
      </tr>`
  }

  /** @param {ServiceName} service @param {User} [user] */
  async #edit(service, user) {
    if (await openUserDialog(service, user)) this.reload()
  }

  /** @param {ServiceName} service @param {string} username */
  async #remove(service, username) {
    const isDone = await confirmDialog({
      title: `Remove ${username}?`,
      body: html`<p>${username} is logged out at once, and the API tokens of ${username} end. What ${username} changed stays in the history.</p>`,
      confirm: 'Remove',
      danger: true,
      action: () => send(service, 'delete', '/api/users/{username}', { params: { username } }),
    })
    if (!isDone) return
    toast(`${username} removed`)
    this.reload()
  }
}

/** @param {{ items: import('../core/view.js').Resource<User[]> }} list */
const namesOf = ({ items }) =>
  JSON.stringify(items.value?.map((user) => [user.username, user.role, user.domains, user.folders]))

customElements.define('user-list', UserList)
