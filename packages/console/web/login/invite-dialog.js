import { call } from '../api/transport.js'
import { html } from '../core/html.js'
import { offeredServices } from '../core/services.js'
import { session } from '../core/session.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'

/** An invited person sets the first password, and is logged in. */
export function openInviteDialog() {
  const form = { username: '', invite: '', new: '' }
  return confirmDialog({
    title: 'Accept an invite',
    className: 'small',
    confirm: 'Set the password',
    busy: 'Setting…',
    body: () => html`
      ${formField(form, 'username', 'Your user name', { isRequired: true })}
      ${formField(form, 'invite', 'Invite code', { isRequired: true })}
      ${formField(form, 'new', 'Your new password', { type: 'password', autocomplete: 'new-password', hint: 'At least 10 characters', isRequired: true })}`,
    action: async () => {
      await acceptAtOne(form)
      await session.logIn(offeredServices(), form.username, form.new)
    },
  })
}

/**
 * The service that made the invite knows it; both do, where they share their users.
 * @param {{ username: string, invite: string, new: string }} json
 */
async function acceptAtOne(json) {
  const outcomes = await Promise.allSettled(
    offeredServices().map((service) =>
      call(service, '/api/auth/password', { method: 'POST', json }),
    ),
  )
  const [refusal] = outcomes.filter(({ status }) => status === 'rejected')
  if (outcomes.every(({ status }) => status === 'rejected') && refusal?.status === 'rejected')
    throw refusal.reason
}
