import { html } from '../core/view.js'
import { attempt, icon, notice, toast } from './states.js'

/** Copies a text and says so. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text)
    toast(`${what} copied`)
  } catch {
    toast(`This browser does not allow copying here: select the text instead.`, 'bad')
  }
}

/** Offers what `load` brings as a file to save. @param {string} name @param {() => Promise<Blob>} load */
export const save = (name, load) =>
  attempt(async () => {
    const url = URL.createObjectURL(await load())
    Object.assign(document.createElement('a'), { href: url, download: name }).click()
    URL.revokeObjectURL(url)
  })

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
