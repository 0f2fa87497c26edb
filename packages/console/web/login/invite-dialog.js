import { acceptInvite } from '../api/users.js'
import { html } from '../core/html.js'
import { offeredServices } from '../core/services.js'
import { session } from '../core/session.js'
import { openDialog } from '../ui/dialog.js'
import { textField } from '../ui/form.js'
import { errorNotice } from '../ui/states.js'

/** An invited person sets the first password, and is logged in. */
export function openInviteDialog() {
  const form = { username: '', invite: '', new: '' }
  let isBusy = false
  /** @type {unknown} */
  let error
  return openDialog({
    title: 'Accept an invite',
    className: 'small',
    isLocked: () => isBusy,
    draw: ({ close, update }) => {
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault()
        isBusy = true
        error = undefined
        update()
        try {
          await acceptAtOne(form)
          await session.logIn(offeredServices(), form.username, form.new)
          close()
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      /** @param {keyof typeof form} name @param {string} label @param {string} [hint] */
      const field = (name, label, hint) =>
        textField({
          id: `invite-${name}`,
          label,
          hint,
          type: name === 'new' ? 'password' : 'text',
          value: form[name],
          autocomplete: name === 'new' ? 'new-password' : 'off',
          isRequired: true,
          onInput: (value) => {
            form[name] = name === 'new' ? value : value.trim()
          },
        })
      return html`
        <form class="dialog-form" @submit=${submit}>
          <div class="dialog-body">
            ${field('username', 'Your user name')} ${field('invite', 'Invite code')}
            ${field('new', 'Your new password', 'At least 10 characters')} ${errorNotice(error)}
          </div>
          <footer class="dialog-footer">
            <button class="button" type="button" @click=${() => close()}>Cancel</button>
            <button class="button primary" ?disabled=${isBusy}>${isBusy ? 'Setting…' : 'Set the password'}</button>
          </footer>
        </form>`
    },
  })
}

/**
 * The service that made the invite knows it; both do, where they share their users.
 * @param {{ username: string, invite: string, new: string }} form
 */
async function acceptAtOne(form) {
  const outcomes = await Promise.allSettled(
    offeredServices().map((service) => acceptInvite(service, form)),
  )
  const [refusal] = outcomes.filter(({ status }) => status === 'rejected')
  if (outcomes.every(({ status }) => status === 'rejected') && refusal?.status === 'rejected')
    throw refusal.reason
}
