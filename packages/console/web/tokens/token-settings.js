import { html } from '../core/html.js'
import { copy } from '../ui/clipboard.js'
import { secretOnce } from '../ui/secret-once.js'

/**
 * The token, this once, and what to type where it is used.
 * @param {import('./purposes.js').Purpose} purpose
 * @param {import('./purposes.js').MadeToken} made
 * @param {() => void} close
 */
export const tokenSettings = (purpose, made, close) => html`
  <div class="dialog-body">
    ${secretOnce(html`<strong>Copy it now.</strong> It is shown this once, and nobody can look it up later.`, made.token, 'Token')}
    <h3>Settings for: ${purpose.title}</h3>
    <dl class="facts stacked">
      ${purpose.settings(made).map(
        ([label, value]) => html`
          <div>
            <dt>${label}</dt>
            <dd><code>${value}</code> <button class="link-button" aria-label="Copy ${label}" @click=${() => copy(value, label)}>Copy</button></dd>
          </div>`,
      )}
    </dl>
  </div>
  <footer class="dialog-footer"><button class="button" @click=${() => close()}>Done</button></footer>`
