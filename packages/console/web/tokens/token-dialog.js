import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { offeredServices, urlOf } from '../core/services.js'
import { isAdmin, mayEdit, session } from '../core/session.js'
import { copy } from '../ui/clipboard.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField, formSelect } from '../ui/form.js'
import { secretOnce } from '../ui/secret-once.js'
import { purposes, splitList, toTokenInput } from './purposes.js'

/** @import { MadeToken, Purpose } from './purposes.js' */

const day = 86_400

/** Makes a token for a purpose and shows it once, with the settings to type in. @returns {Promise<boolean>} whether one was made */
export async function openTokenDialog() {
  const offered = Object.entries(purposes).filter(
    ([, { service, role }]) =>
      offeredServices().includes(service) &&
      session.loginOf(service) &&
      (role === 'viewer' || mayEdit(service)),
  )
  const form = { purpose: offered[0]?.[0] ?? '', name: '', days: '90', domain: '', names: '' }
  const purposeNow = () => /** @type {Purpose} */ (purposes[form.purpose])
  const domains = await suggestDomains()
  /** @type {MadeToken} */
  let made
  return confirmDialog({
    title: 'New API token',
    confirm: 'Make the token',
    busy: 'Making…',
    body: (/** @type {() => void} */ update) => html`
      <fieldset class="purposes">
        <legend>What is it for?</legend>
        ${offered.map(
          ([key, { title, hint }]) => html`
            <label class="purpose">
              <input type="radio" name="purpose" value=${key} .checked=${key === form.purpose} @change=${() => {
                form.purpose = key
                update()
              }} />
              <span>${title}<small>${hint}</small></span>
            </label>`,
        )}
      </fieldset>
      ${questions(purposeNow(), form, domains)}`,
    action: async () => {
      const { service } = purposeNow()
      const missing = findMissing(purposeNow(), form)
      if (missing) throw new Error(missing)
      const answers = { domain: form.domain.toLowerCase(), names: form.names.toLowerCase() }
      const expiresIn = Number(form.days) * day
      const json = toTokenInput(purposeNow(), { name: form.name, expiresIn, answers })
      const { token } = await send(service, 'post', '/api/tokens', { json })
      made = { token, url: urlOf(service), answers }
    },
    done: () => tokenSettings(purposeNow(), made),
  })
}

// Names to choose from; without them the name is typed.
async function suggestDomains() {
  if (!session.loginOf('domains')) return []
  const query = { page_size: 100 }
  const found = await get('domains', '/api/domains', { query }).catch(() => ({ domains: [] }))
  return found.domains.map(({ name }) => name)
}

/**
 * @param {Purpose} purpose
 * @param {{ name: string, days: string, domain: string, names: string }} form
 * @param {string[]} domains
 */
const questions = ({ asks, service, role }, form, domains) => html`
  ${
    asks.includes('domain')
      ? html`<div class="field-pair">
        ${formField(form, 'domain', 'Domain', { hint: role ? 'Empty: all of your domains' : 'The domain that the name belongs to', placeholder: 'example.com', list: 'domain-names' })}
        ${asks.includes('names') ? formField(form, 'names', 'Host names', { hint: 'Without the domain; several with commas', placeholder: 'home' }) : nothing}
      </div>
      <datalist id="domain-names">${domains.map((name) => html`<option value=${name}></option>`)}</datalist>`
      : nothing
  }
  <div class="field-pair">
    ${formField(form, 'name', 'Name of the token', { hint: 'The history shows it beside your name.', placeholder: 'Router at home' })}
    ${formSelect(form, 'days', 'Valid for', [
      ['30', '30 days'],
      ['90', '90 days'],
      ['365', '1 year'],
      ...(isAdmin(service) ? [/** @type {[string, string]} */ (['0', 'Never'])] : []),
    ])}
  </div>`

/** @param {Purpose} purpose @param {{ name: string, domain: string, names: string }} form */
function findMissing({ asks, role }, { name, domain, names }) {
  if (asks.includes('domain') && !role && !domain) return 'Write the domain.'
  if (asks.includes('names') && splitList(names).length === 0)
    return 'Write at least one host name, such as home.'
  return name ? undefined : 'Give the token a name, so that you know it again.'
}

/** The token, this once, and what to type where it is used. @param {Purpose} purpose @param {MadeToken} made */
const tokenSettings = (purpose, made) => html`
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
    </dl>`
