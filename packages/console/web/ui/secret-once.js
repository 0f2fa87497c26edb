import { html } from '../core/html.js'
import { copy } from './clipboard.js'
import { icon } from './icons.js'
import { notice } from './states.js'

/**
 * What is shown this once, with a button that copies it.
 * @param {unknown} words
 * @param {string} secret
 * @param {string} what it is
 */
export const secretOnce = (words, secret, what) => html`
  ${notice(html`<p>${words}</p>`, 'good')}
  <div class="token-value">
    <code data-secret>${secret}</code>
    <button class="button primary" @click=${() => copy(secret, what)}>${icon('copy')} Copy</button>
  </div>`
