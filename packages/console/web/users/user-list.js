import { get, managesUsers, send, session } from '../api/client.js'
import { html, nothing } from '../core/view.js'
import { secretOnce } from '../ui/copy.js'
import { confirmDialog, removalDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { formatAge, formatDate, splitFolders, splitList } from '../ui/format.js'
import { rightsChips, ServiceLists } from '../ui/service-lists.js'
import { page } from '../ui/states.js'
import { list } from '../ui/table.js'

/**
 * Who may use the services: add with an invite, change rights, remove. For admins without limits.
 * @extends {ServiceLists<Api.User>}
 */
class UserList extends ServiceLists {
  offers = managesUsers
  #isShared = false

  /** @param {Api.ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    /** @type {Api.User[]} */
    const all = []
    for (let page = 1; ; page += 1) {
      const query = { page, page_size: 200 }
      const { users, pagination } = await get(service, '/api/users', { query, signal })
      all.push(...users)
      if (page >= pagination.total_pages) return all
    }
  }

  /** One, where both services have the same users. While they are read, one comes before the other: as before. */
  #shown() {
    const [first, second] = this.offered
    if (this.offered.every(({ items }) => !items.isLoading))
      this.#isShared = first?.items.value !== undefined && namesOf(first) === namesOf(second ?? first)
    return first && this.#isShared ? [first] : this.offered
  }

  template() {
    const content = html`
      <p class="muted">Changes take effect at once, everywhere. A removed user is logged out, and their API tokens end.</p>
      ${this.sections((service, users) => this.#list(service, users), 'New user', openUserDialog, this.#shown())}`
    return page('Users', '', content)
  }

  /** @param {Api.ServiceName} service @param {Api.User[]} users */
  #list(service, users) {
    const self = session.loginOf(service)?.username
    const remove = (/** @type {string} */ username) => {
      const words = `${username} is logged out at once, and the API tokens of ${username} end. What ${username} changed stays in the history.`
      return removalDialog('Remove', username, words, () =>
        send(service, 'delete', '/api/users/{username}', { params: { username } }),
      )
    }
    return list(
      users,
      {
        Name: ({ username }) =>
          html`<strong>${username}</strong> ${username === self ? html`<span class="muted">(you)</span>` : nothing}`,
        Rights: rightsChips,
        'Last login': ({ last_login_at: at }) => (at ? formatAge(at) : 'never'),
        Added: ({ created_at: at }) => formatDate(at),
      },
      (user) => [
        user.username,
        ['Change', () => this.reloadAfter(openUserDialog(service, user))],
        user.source === 'local' ? ['New password', () => openPasswordReset(service, user.username)] : undefined,
        user.username === self ? undefined : ['Remove', () => this.reloadAfter(remove(user.username))],
      ],
    )
  }
}

/** @param {{ items: import('../core/view.js').Resource<Api.User[]> }} list */
const namesOf = ({ items }) =>
  JSON.stringify(items.value?.map((user) => [user.username, user.role, user.domains, user.folders]))

customElements.define('user-list', UserList)

const roles = [
  ['viewer', 'Viewer: reads'],
  ['editor', 'Editor: changes records and files'],
  ['admin', 'Admin: everything'],
]

const writes = [
  ['', 'Take effect at once'],
  ['propose', 'Wait for another person’s approval'],
]

/**
 * Adds a user, who sets the password by an invite that is shown once, or changes one.
 * @param {Api.ServiceName} service
 * @param {Api.User} [user]
 * @returns {Promise<boolean>} whether something changed
 */
function openUserDialog(service, user) {
  const form = {
    username: user?.username ?? '',
    role: /** @type {string} */ (user?.role ?? 'editor'),
    domains: user?.domains?.join(', ') ?? '',
    folders: user?.folders?.join(', ') ?? '',
    writes: /** @type {string} */ (user?.writes ?? ''),
  }
  let invite = ''
  // Who has no limit yet has none to give up.
  const none = user ? null : undefined
  // A name may have a comma, so a list that was not edited is sent as it came.
  const listOf = (/** @type {string} */ text, /** @type {string[] | null | undefined} */ given, split = splitList) =>
    given && text === given.join(', ') ? given : text ? split(text) : none
  return confirmDialog({
    title: user ? `Change ${user.username}` : 'New user',
    confirm: user ? 'Save' : 'Add',
    body: () => html`
      ${formField(form, 'username', 'User name', { hint: 'Letters, digits and . _ -', isRequired: true, isDisabled: user !== undefined })}
      ${formField(form, 'role', 'Role', { options: roles })}
      ${formField(form, 'domains', 'Only these domains', { hint: 'With commas; *.example.net for all below. Empty: all' })}
      ${formField(form, 'folders', 'Only these folders', { hint: 'With commas, such as docs/, site/assets/. Empty: all' })}
      ${formField(form, 'writes', 'Changes of records', { options: writes })}
      ${user ? nothing : html`<p class="note">You get an invite code, with which the person sets the password.</p>`}`,
    action: async () => {
      const { username } = form
      const role = /** @type {Api.User['role']} */ (form.role)
      const limits = {
        domains: listOf(form.domains, user?.domains),
        folders: listOf(form.folders, user?.folders, splitFolders),
      }
      const json = { role, ...limits, writes: form.writes === 'propose' ? form.writes : none }
      const added = { ...json, username }
      if (!user) ({ invite = '' } = await send(service, 'post', '/api/users', { json: added }))
      else await send(service, 'patch', '/api/users/{username}', { params: { username }, json })
    },
    done: user ? undefined : () => inviteOnce(form.username, invite),
    said: user && `${form.username} changed`,
  })
}

/** An invite for a person who forgot the password, or whose invite has expired. @param {Api.ServiceName} service @param {string} username */
function openPasswordReset(service, username) {
  let invite = ''
  return confirmDialog({
    title: `New password for ${username}`,
    className: 'small',
    confirm: 'Make an invite',
    body: html`<p>You get an invite code, with which ${username} sets a new password. Logins and the password of ${username} go on until then.</p>`,
    action: async () => {
      const options = { params: { username }, json: { invite: true } }
      invite = (await send(service, 'patch', '/api/users/{username}', options)).invite ?? ''
    },
    done: () => inviteOnce(username, invite),
  })
}

/** @param {string} username @param {string} invite */
function inviteOnce(username, invite) {
  const words = html`<strong>Send this code to ${username}.</strong> It is shown this once, and valid for 72 hours: on the login page, “I have an invite”.`
  return secretOnce(words, invite, 'Invite')
}
