import { html } from '../core/html.js'
import { titleOf } from '../core/services.js'
import { session } from '../core/session.js'
import { openDialog } from '../ui/dialog.js'

let isOpen = false

/** Asks for a new login above the present view when tokens expire. Several services are asked for with one form. */
export async function openRenewal() {
  if (isOpen) return
  isOpen = true
  const services = session.renewing
  const username = services.map((service) => session.loginOf(service)?.username).find(Boolean)
  await openDialog({
    title: 'Log in again',
    className: 'small',
    draw: ({ close }) => {
      const closeWhenDone = () => {
        if (services.some((service) => session.renewing.includes(service))) return
        session.removeEventListener('change', closeWhenDone)
        close()
      }
      session.addEventListener('change', closeWhenDone)
      return html`
        <div class="dialog-body">
          <p>
            Your login for ${services.map(titleOf).join(' and ')} has ended. What you typed is still there and goes on
            after you log in.
          </p>
          <login-form .services=${services} .username=${username ?? ''}></login-form>
        </div>`
    },
  })
  isOpen = false
  for (const service of services) session.giveUp(service)
  if (session.renewing.length > 0) void openRenewal()
}
