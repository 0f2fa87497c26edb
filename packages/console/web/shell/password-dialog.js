import { changePassword } from '../api/users.js'
import { html } from '../core/html.js'
import { offeredServices } from '../core/services.js'
import { session } from '../core/session.js'
import { openDialog } from '../ui/dialog.js'
import { textField } from '../ui/form.js'
import { errorNotice } from '../ui/states.js'
import { toast } from '../ui/toast.js'

/** Changes the password of the person at every service that it is logged in at. All other logins of it end. */
export async function openPasswordDialog() {
  const form = { current: '', next: '', again: '' }
  let isBusy = false
  /** @type {unknown} */
  let error
  const isDone = await openDialog({
    title: 'Change password',
    className: 'small',
    isLocked: () => isBusy,
    draw: ({ close, update }) => {
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault()
        error = form.next === form.again ? undefined : new Error('The new passwords differ.')
        isBusy = !error
        update()
        if (error) return
        try {
          await changeEverywhere(form.current, form.next)
          close(true)
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      /** @param {keyof typeof form} name @param {string} label @param {string} [hint] */
      const field = (name, label, hint) =>
        textField({
          id: `password-${name}`,
          label,
          type: 'password',
          value: form[name],
          autocomplete: name === 'current' ? 'current-password' : 'new-password',
          isRequired: true,
          hint,
          onInput: (value) => {
            form[name] = value
          },
        })
      return html`
        <form class="dialog-form" @submit=${submit}>
          <div class="dialog-body">
            ${field('current', 'Current password')}
            ${field('next', 'New password', 'At least 10 characters. Your other logins end.')}
            ${field('again', 'New password, again')} ${errorNotice(error)}
          </div>
          <footer class="dialog-footer">
            <button class="button" type="button" @click=${() => close()}>Cancel</button>
            <button class="button primary" ?disabled=${isBusy}>${isBusy ? 'Changing…' : 'Change'}</button>
          </footer>
        </form>`
    },
  })
  if (isDone) toast('Your password is changed')
}

/**
 * Services may share their users: then the first change ends the password that the second one is asked to change.
 * @param {string} current
 * @param {string} next
 */
async function changeEverywhere(current, next) {
  const [first, ...others] = offeredServices().filter((service) => session.loginOf(service))
  if (!first) return
  await changePassword(first, current, next)
  for (const service of others) {
    const refusals = await session.logIn([service], session.loginOf(service)?.username ?? '', next)
    if (refusals.length > 0) await changePassword(service, current, next)
  }
}
