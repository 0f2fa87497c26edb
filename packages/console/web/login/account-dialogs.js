import { draftsName, send, session } from '../api/client.js'
import { call, offeredServices, titleOf, urlOf } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { formatDuration } from '../ui/format.js'
import './login-form.js'

/** Who am I at each service, with a login for one that has none. */
export function openAccount() {
  return openDialog({
    title: 'Your account',
    className: 'small',
    draw: ({ close, update }) => {
      /** @param {'true'} [everywhere] */
      const logOut = (everywhere) => {
        close()
        void (everywhere || hasDrafts() ? openLogOut(everywhere) : session.logOut())
      }
      session.addEventListener('change', update, { once: true })
      return html`
        <div class="dialog-body">
          ${offeredServices().map((service) => {
            const login = session.loginOf(service)
            return html`
              <section class="account">
                <h3>${titleOf(service)}</h3>
                ${login ? html`<p><strong>${login.username}</strong> <span class="chip">${login.role}</span></p><p class="muted">This login ends in ${formatDuration(Math.max(0, login.expiresAt - Date.now()) / 1000)}.</p>` : html`<p class="muted">Not logged in.</p><login-form .services=${[service]}></login-form>`}
                <p class="note"><code>${urlOf(service)}</code></p>
              </section>`
          })}
        </div>
        <footer class="dialog-footer">
          <a class="button" href="#/tokens" @click=${() => close()}>API tokens</a>
          <button class="button" @click=${() => void openPasswordDialog()}>Change password</button>
          <button class="button" @click=${() => logOut('true')}>Log out everywhere</button>
          <button class="button" @click=${() => logOut()}>Log out</button>
        </footer>`
    },
  })
}

const hasDrafts = () => Object.keys(sessionStorage).some((name) => name === draftsName || name.startsWith('form '))

/** @param {'true'} [everywhere] */
const openLogOut = (everywhere) =>
  confirmDialog({
    title: everywhere ? 'Log out everywhere?' : 'Log out and lose your draft?',
    body: html`
      ${everywhere ? html`<p>All your logins end, also in other browsers. Your API tokens go on.</p>` : nothing}
      ${hasDrafts() ? html`<p>There are changes of records that are not applied yet. They are lost.</p>` : nothing}`,
    confirm: everywhere ? 'End all logins' : 'Log out',
    danger: true,
    action: () => session.logOut(everywhere),
  })

const newPassword = { type: 'password', autocomplete: 'new-password', isRequired: true }

/** Changes the password of the person at every service that it is logged in at. All other logins of it end, API tokens go on. */
function openPasswordDialog() {
  const form = { current: '', next: '', again: '' }
  return confirmDialog({
    title: 'Change password',
    className: 'small',
    confirm: 'Change',
    body: () => html`
      ${formField(form, 'current', 'Current password', { ...newPassword, autocomplete: 'current-password' })}
      ${formField(form, 'next', 'New password', { ...newPassword, hint: 'At least 10 characters. Your other logins end, your API tokens stay valid.' })}
      ${formField(form, 'again', 'New password, again', newPassword)}`,
    action: async () => {
      if (form.next !== form.again) throw new Error('The new passwords differ.')
      await changeEverywhere(form)
    },
    said: 'Your password is changed',
  })
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

let isOpen = false

/** Asks for a new login above the present view when tokens expire: one form for all logins of that name. */
export async function openRenewal() {
  const [first] = session.renewing
  if (isOpen || !first) return
  isOpen = true
  const closed = new AbortController()
  const nameOf = (/** @type {Api.ServiceName} */ service) => session.loginOf(service)?.username
  const username = nameOf(first)
  const services = offeredServices().filter((service) => nameOf(service) === username)
  await openDialog({
    title: 'Log in again',
    className: 'small',
    draw: ({ close }) => {
      const follow = () => services.some((each) => session.renewing.includes(each)) || close()
      session.addEventListener('change', follow, closed)
      return html`
        <div class="dialog-body">
          <p>Your login has ended. What you typed is still there and goes on after you log in.</p>
          <login-form .services=${services} .username=${username ?? ''}></login-form>
        </div>`
    },
  })
  closed.abort()
  isOpen = false
  for (const service of services) session.settle(service)
  if (session.renewing.length > 0) void openRenewal()
}

/** An invited person sets the first password, and is logged in. */
export function openInviteDialog() {
  const form = { username: '', invite: '', new: '' }
  return confirmDialog({
    title: 'Accept an invite',
    className: 'small',
    confirm: 'Set the password',
    body: () => html`
      ${formField(form, 'username', 'Your user name', { id: 'invited-username', isRequired: true })}
      ${formField(form, 'invite', 'Invite code', { isRequired: true })}
      ${formField(form, 'new', 'Your new password', { ...newPassword, hint: 'At least 10 characters' })}`,
    action: async () => {
      // The service that made the invite knows it; both do, where they share their users.
      const options = { method: 'POST', json: form }
      const tries = offeredServices().map((service) => call(service, '/api/auth/password', options))
      await Promise.any(tries).catch(({ errors: [refusal] }) => {
        throw refusal
      })
      await session.logIn(offeredServices(), form.username, form.new)
    },
  })
}

const shortcuts = {
  '/': 'Search in this view',
  '↑ ↓': 'Move between rows',
  Enter: 'Open the row',
  Space: 'Select the row (files)',
  n: 'Add a record, upload files, make a new one',
  r: 'Review the changes (domain)',
  Esc: 'Close, or empty the search',
  '?': 'Show these keys',
}

/** The keys that work everywhere. */
export function openShortcuts() {
  const rows = Object.entries(shortcuts).map(
    ([key, meaning]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${meaning}</dd></div>`,
  )
  // Speech input needs them off (WCAG 2.1.4).
  const turn = (/** @type {boolean} */ isOn) => {
    localStorage.characterKeys = isOn ? 'on' : 'off'
  }
  const draw = () => html`<div class="dialog-body"><dl class="keys">${rows}</dl>
    ${checkbox('Keys of one character work', localStorage.characterKeys !== 'off', turn, 'In this browser')}</div>`
  return openDialog({ title: 'Keyboard', className: 'small', draw })
}
