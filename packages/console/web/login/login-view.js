import { html, nothing } from '../core/html.js'
import { offeredServices, titleOf, urlOf } from '../core/services.js'
import { empty, notice } from '../ui/states.js'
import { openInviteDialog } from './invite-dialog.js'
import './login-form.js'

/** @import { ServiceName } from '../core/services.js' */

/** The whole page while nobody is logged in. */
export const loginPage = () => html`
  <main class="login-page" id="main">
    <div class="login-card">
      <img class="login-mark" src=${new URL('../favicon.svg', import.meta.url).href} alt="" width="40" height="40" />
      <h1>Domains and files</h1>
      ${
        offeredServices().length === 0
          ? notice(
              'No service is configured: set DOMAIN_SERVICE_URL or STATIC_SERVICE_URL.',
              'warn',
            )
          : html`
            <p class="muted">Log in with the account of your services.</p>
            <login-form></login-form>
            <p class="note">
              Your password goes straight to
              ${offeredServices().map((service, at) => html`${at > 0 ? ' and ' : nothing}<code>${urlOf(service)}</code>`)}.
              This page keeps no password; closing the tab logs you out.
            </p>
            <button class="link-button" @click=${() => void openInviteDialog()}>I have an invite</button>`
      }
    </div>
  </main>`

/** In place of a view whose service did not accept the login. @param {ServiceName} service */
export const loginPanel = (service) => html`
  <div class="view narrow">
    ${empty({
      icon: 'lock',
      title: `Log in to ${titleOf(service)}`,
      text: 'Your login was not accepted there. Use another account for this service.',
    })}
    <login-form class="panel" .services=${[service]}></login-form>
  </div>`
