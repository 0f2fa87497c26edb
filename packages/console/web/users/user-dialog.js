import { changeUser, createUser } from '../api/users.js'
import { html, nothing } from '../core/html.js'
import { copy } from '../ui/clipboard.js'
import { openDialog } from '../ui/dialog.js'
import { selectField, textField } from '../ui/form.js'
import { icon } from '../ui/icons.js'
import { errorNotice, notice } from '../ui/states.js'
import { toast } from '../ui/toast.js'

/**
 * @import { User } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 * @typedef {'viewer' | 'editor' | 'admin'} Role
 */

/** @type {[Role, string][]} */
const roles = [
  ['viewer', 'Viewer: reads'],
  ['editor', 'Editor: changes records and files'],
  ['admin', 'Admin: everything'],
]

/**
 * Adds a user, who sets the password by an invite that is shown once, or changes one.
 * @param {ServiceName} service
 * @param {User} [user]
 * @returns {Promise<boolean>} whether something changed
 */
export async function openUserDialog(service, user) {
  const form = {
    username: user?.username ?? '',
    role: /** @type {string} */ (user?.role ?? 'editor'),
    domains: user?.domains?.join(', ') ?? '',
    folders: user?.folders?.join(', ') ?? '',
  }
  let isChanged = false
  let isBusy = false
  let invite = ''
  /** @type {unknown} */
  let error
  await openDialog({
    title: user ? `Change ${user.username}` : 'New user',
    isLocked: () => isBusy,
    draw: ({ close, update }) => {
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault()
        isBusy = true
        error = undefined
        update()
        try {
          invite = (await save(service, form, user)) ?? ''
          isChanged = true
          if (!invite) {
            toast(`${form.username} changed`)
            close()
          }
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      if (invite) return inviteText(form.username, invite, close)
      /** @param {'username' | 'domains' | 'folders'} name @param {string} label @param {string} hint */
      const field = (name, label, hint) =>
        textField({
          id: `user-${name}`,
          label,
          hint,
          value: form[name],
          isRequired: name === 'username',
          isDisabled: name === 'username' && user !== undefined,
          onInput: (value) => {
            form[name] = value.trim()
          },
        })
      return html`
        <form class="dialog-form" @submit=${submit}>
          <div class="dialog-body">
            ${field('username', 'User name', 'Letters, digits and . _ -')}
            ${selectField({
              id: 'user-role',
              label: 'Role',
              value: form.role,
              options: roles,
              onInput: (value) => {
                form.role = value
              },
            })}
            ${field('domains', 'Only these domains', 'With commas; *.example.net for all below. Empty: all')}
            ${field('folders', 'Only these folders', 'With commas, such as docs/, site/assets/. Empty: all')}
            ${user ? nothing : html`<p class="note">You get an invite code, with which the person sets the password.</p>`}
            ${errorNotice(error)}
          </div>
          <footer class="dialog-footer">
            <button class="button" type="button" @click=${() => close()}>Cancel</button>
            <button class="button primary" ?disabled=${isBusy}>${isBusy ? 'Saving…' : user ? 'Save' : 'Add'}</button>
          </footer>
        </form>`
    },
  })
  return isChanged
}

/**
 * @param {ServiceName} service
 * @param {{ username: string, role: string, domains: string, folders: string }} form
 * @param {User} [user]
 * @returns {Promise<string | undefined>} the invite of a new user
 */
async function save(service, form, user) {
  const role = /** @type {Role} */ (form.role)
  const [domains, folders] = [form.domains, form.folders].map((text) =>
    text.split(/[\s,]+/).filter(Boolean),
  )
  if (user) {
    await changeUser(service, user.username, {
      role,
      domains: domains?.length ? domains : null,
      folders: folders?.length ? folders : null,
    })
    return undefined
  }
  const { username } = form
  const limits = { ...(domains?.length && { domains }), ...(folders?.length && { folders }) }
  return (await createUser(service, { username, role, ...limits })).invite
}

/** @param {string} username @param {string} invite @param {() => void} close */
const inviteText = (username, invite, close) => html`
  <div class="dialog-body">
    ${notice(html`<p><strong>Send this code to ${username}.</strong> It is shown this once, and valid for 72 hours: on the login page, “I have an invite”.</p>`, 'good')}
    <div class="token-value">
      <code data-invite>${invite}</code>
      <button class="button primary" @click=${() => copy(invite, 'Invite')}>${icon('copy')} Copy</button>
    </div>
  </div>
  <footer class="dialog-footer"><button class="button" @click=${() => close()}>Done</button></footer>`
