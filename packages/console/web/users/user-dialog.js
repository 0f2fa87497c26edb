import { send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField, formSelect } from '../ui/form.js'
import { secretOnce } from '../ui/secret-once.js'
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

/** @type {[string, string][]} */
const writes = [
  ['', 'Count at once'],
  ['propose', 'Wait for another person’s approval'],
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
    writes: /** @type {string} */ (user?.writes ?? ''),
  }
  let invite = ''
  const isDone = await confirmDialog({
    title: user ? `Change ${user.username}` : 'New user',
    confirm: user ? 'Save' : 'Add',
    body: () => html`
      ${formField(form, 'username', 'User name', { hint: 'Letters, digits and . _ -', isRequired: true, isDisabled: user !== undefined })}
      ${formSelect(form, 'role', 'Role', roles)}
      ${formField(form, 'domains', 'Only these domains', { hint: 'With commas; *.example.net for all below. Empty: all' })}
      ${formField(form, 'folders', 'Only these folders', { hint: 'With commas, such as docs/, site/assets/. Empty: all' })}
      ${formSelect(form, 'writes', 'Writes of zones', writes)}
      ${user ? nothing : html`<p class="note">You get an invite code, with which the person sets the password.</p>`}`,
    action: async () => {
      invite = (await save(service, form, user)) ?? ''
    },
    done: user
      ? undefined
      : () =>
          secretOnce(
            html`<strong>Send this code to ${form.username}.</strong> It is shown this once, and valid for 72 hours: on the login page, “I have an invite”.`,
            invite,
            'Invite',
          ),
  })
  if (isDone && user) toast(`${form.username} changed`)
  return isDone
}

/**
 * @param {ServiceName} service
 * @param {{ username: string, role: string, domains: string, folders: string, writes: string }} form
 * @param {User} [user]
 * @returns {Promise<string | undefined>} the invite of a new user
 */
async function save(service, form, user) {
  const { username } = form
  const role = /** @type {Role} */ (form.role)
  const [domains = null, folders = null] = [form.domains, form.folders].map((text) => {
    const names = text.split(/[\s,]+/).filter(Boolean)
    return names.length > 0 ? names : null
  })
  const writes = form.writes === 'propose' ? form.writes : null
  if (user) {
    const json = { role, domains, folders, writes }
    await send(service, 'patch', '/api/users/{username}', { params: { username }, json })
    return undefined
  }
  const limits = { domains, folders, writes }
  const given = Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== null))
  const json = { username, role, ...given }
  return (await send(service, 'post', '/api/users', { json })).invite
}
