import { html } from '../core/html.js'
import { offeredServices, titleOf, urlOf } from '../core/services.js'
import { draftsName, session } from '../core/session.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { formatDuration } from '../ui/format.js'
import '../login/login-form.js'
import { openPasswordDialog } from './password-dialog.js'

/** Who am I at each service, with a login for one that has none. */
export function openAccount() {
  return openDialog({
    title: 'Your account',
    className: 'small',
    draw: ({ close, update }) => {
      const logOut = async () => {
        close()
        if (sessionStorage.getItem(draftsName) === null || (await confirmLoss())) session.logOut()
      }
      session.addEventListener('change', update, { once: true })
      return html`
        <div class="dialog-body">
          ${offeredServices().map((service) => {
            const login = session.loginOf(service)
            return html`
              <section class="account">
                <h3>${titleOf(service)}</h3>
                ${login ? describe(login) : html`<p class="muted">Not logged in.</p><login-form .services=${[service]}></login-form>`}
                <p class="note"><code>${urlOf(service)}</code></p>
              </section>`
          })}
        </div>
        <footer class="dialog-footer">
          <a class="button" href="#/tokens" @click=${() => close()}>API tokens</a>
          <button class="button" @click=${() => void openPasswordDialog()}>Change password</button>
          <button class="button" @click=${logOut}>Log out</button>
        </footer>`
    },
  })
}

const confirmLoss = () =>
  confirmDialog({
    title: 'Log out and lose your draft?',
    body: html`<p>There are changes of records that are not applied yet. They are lost.</p>`,
    confirm: 'Log out',
    danger: true,
    action: async () => {},
  })

/** @param {import('../core/session.js').Login} login */
const describe = ({ username, role, expiresAt }) => html`
  <p><strong>${username}</strong> <span class="chip">${role}</span></p>
  <p class="muted">This login ends in ${formatDuration(Math.max(0, expiresAt - Date.now()) / 1000)}.</p>`
