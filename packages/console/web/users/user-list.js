import { listUsers, removeUser } from '../api/users.js'
import { html, nothing } from '../core/html.js'
import { offeredServices, titleOf } from '../core/services.js'
import { isAdmin, session } from '../core/session.js'
import { Resource, View } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { formatAge, formatDate } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { show } from '../ui/states.js'
import { toast } from '../ui/toast.js'
import { openUserDialog } from './user-dialog.js'

/**
 * @import { User } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/** Who may use the services: add with an invite, change rights, remove. For admins. */
class UserList extends View {
  /** @type {{ service: ServiceName, users: Resource<User[]> }[]} */
  #lists = []

  opened() {
    session.addEventListener('change', () => this.#load(), { signal: this.signal })
    this.#load()
  }

  #load() {
    this.#lists = offeredServices()
      .filter((service) => isAdmin(service))
      .map((service) => ({
        service,
        users: new Resource(this, (signal) => listUsers(service, signal)),
      }))
    for (const { users } of this.#lists) void users.reload()
  }

  /** The lists to show: one, where both services have the same users. */
  #shown() {
    const [first, second] = this.#lists
    const isShared = first?.users.value && namesOf(first) === namesOf(second ?? first)
    return first && isShared ? [first] : this.#lists
  }

  template() {
    const shown = this.#shown()
    return html`
      <div class="view">
        <header class="view-header">
          <h1>Users</h1>
        </header>
        <p class="muted">Changes count at once, everywhere. Who is removed is logged out, and their API tokens end.</p>
        ${shown.map(
          ({ service, users }) => html`
            <section aria-label=${titleOf(service)} class="token-section">
              <div class="toolbar">
                <h2>${shown.length < this.#lists.length ? 'Both services' : titleOf(service)}</h2>
                <button class="button primary" @click=${() => this.#edit(service)}>${icon('plus')} New user</button>
              </div>
              ${show(users, (list) => this.#table(service, list), 3)}
            </section>`,
        )}
      </div>`
  }

  /** @param {ServiceName} service @param {User[]} users */
  #table(service, users) {
    return html`
      <div class="table-frame">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">May</th>
              <th scope="col">Last login</th>
              <th scope="col">Added</th>
              <th scope="col"><span class="sr-only">Actions</span></th>
            </tr>
          </thead>
          <tbody>${users.map((user) => this.#row(service, user))}</tbody>
        </table>
      </div>`
  }

  /** @param {ServiceName} service @param {User} user */
  #row(service, user) {
    const { username, role, domains, folders, created_at: added, last_login_at: seen } = user
    const isSelf = username === session.loginOf(service)?.username
    return html`
      <tr>
        <th scope="row"><strong>${username}</strong> ${isSelf ? html`<span class="muted">(you)</span>` : nothing}</th>
        <td>
          <span class="chip">${role}</span>
          ${[...(domains ?? []), ...(folders ?? [])].map((limit) => html`<span class="chip accent">${limit}</span>`)}
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
    if (await openUserDialog(service, user)) this.#load()
  }

  /** @param {ServiceName} service @param {string} username */
  async #remove(service, username) {
    const isDone = await confirmDialog({
      title: `Remove ${username}?`,
      body: html`<p>${username} is logged out at once, and the API tokens of ${username} end. What ${username} changed stays in the history.</p>`,
      confirm: 'Remove',
      danger: true,
      action: () => removeUser(service, username),
    })
    if (!isDone) return
    toast(`${username} removed`)
    this.#load()
  }
}

/** @param {{ users: Resource<User[]> }} list */
const namesOf = ({ users }) =>
  JSON.stringify(users.value?.map((user) => [user.username, user.role, user.domains, user.folders]))

customElements.define('user-list', UserList)
