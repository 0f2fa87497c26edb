import { send } from '../api/client.js'
import { html } from '../core/html.js'
import { offeredServices } from '../core/services.js'
import { session } from '../core/session.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { toast } from '../ui/toast.js'

/** Changes the password of the person at every service that it is logged in at. All other logins of it end. */
export async function openPasswordDialog() {
  const form = { current: '', next: '', again: '' }
  /** @param {keyof typeof form} name @param {string} label @param {string} [hint] */
  const field = (name, label, hint) =>
    formField(form, name, label, {
      type: 'password',
      autocomplete: name === 'current' ? 'current-password' : 'new-password',
      isRequired: true,
      hint,
    })
  const isDone = await confirmDialog({
    title: 'Change password',
    className: 'small',
    confirm: 'Change',
    busy: 'Changing…',
    body: () => html`
      ${field('current', 'Current password')}
      ${field('next', 'New password', 'At least 10 characters. Your other logins end.')}
      ${field('again', 'New password, again')}`,
    action: async () => {
      if (form.next !== form.again) throw new Error('The new passwords differ.')
      await changeEverywhere(form)
    },
  })
  if (isDone) toast('Your password is changed')
}

/**
 * Services may share their users: then the first change ends the password that the second one is asked to change.
 * @param {{ current: string, next: string }} form
 */
async function changeEverywhere({ current, next }) {
  const json = { current, new: next }
  const [first, ...others] = offeredServices().filter((service) => session.loginOf(service))
  if (!first) return
  await send(first, 'post', '/api/auth/password', { json })
  for (const service of others) {
    const refusals = await session.logIn([service], session.loginOf(service)?.username ?? '', next)
    if (refusals.length > 0) await send(service, 'post', '/api/auth/password', { json })
  }
}
