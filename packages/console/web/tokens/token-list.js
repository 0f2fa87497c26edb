import { get, isAdmin, mayEdit, send, session } from '../api/client.js'
import { urlOf } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { copy, secretOnce } from '../ui/copy.js'
import { confirmDialog, removalDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { formatAge, formatCount, formatDate } from '../ui/format.js'
import { rightsChips, ServiceLists } from '../ui/service-lists.js'
import { empty, icon, page } from '../ui/states.js'
import { list } from '../ui/table.js'
import { purposes, toTokenInput } from './purposes.js'

/** @import { Answers, MadeToken, Purpose } from './purposes.js' */

/** The person's API tokens at both services: make, copy once, revoke. @extends {ServiceLists<Api.ApiToken>} */
class TokenList extends ServiceLists {
  /** @param {Api.ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    // As many as one person can have.
    const query = { page_size: 200 }
    return (await get(service, '/api/tokens', { query, signal })).tokens
  }

  template() {
    const create = html`<button class="button primary" data-key="n" @click=${() => this.reloadAfter(openTokenDialog())}>${icon('plus')} New token</button>`
    const content = html`
      <p class="muted">Tokens are for programs and devices: each has its own limits, and can be revoked at any time.</p>
      ${this.sections((service, tokens) => this.#list(service, tokens))}`
    return page('API tokens', create, content)
  }

  /** @param {Api.ServiceName} service @param {Api.ApiToken[]} tokens */
  #list(service, tokens) {
    const hint = 'Make one for a router, a certificate client or a script.'
    if (tokens.length === 0) return empty('key', 'No tokens yet', hint)
    const words = 'Programs that use it are refused at once. This cannot be undone.'
    const revoke = (/** @type {Api.ApiToken} */ { id, name }) =>
      removalDialog('Revoke', name, words, () => send(service, 'delete', '/api/tokens/{id}', { params: { id } }))
    return list(
      tokens,
      {
        Name: ({ name, hint }) => html`<strong>${name}</strong> <code class="muted">…${hint}</code>`,
        Rights: rightsChips,
        'Last used': ({ last_used_at: at }) => (at ? formatAge(at) : 'never'),
        Expires: ({ expires_at: at }) => {
          if (at && new Date(at).getTime() <= Date.now()) return html`<span class="chip">expired</span>`
          return at ? formatDate(at) : 'never'
        },
      },
      (token) => [token.name, ['Revoke', () => this.reloadAfter(revoke(token))]],
    )
  }
}

customElements.define('token-list', TokenList)

const spans = [30, 90, 365].map((days) => [`${days}`, formatCount(days, 'day')])

/** Makes a token for a purpose and shows it once, with the settings to type in. @returns {Promise<boolean>} whether one was made */
async function openTokenDialog() {
  const offered = Object.entries(purposes).filter(
    ([, { service, role }]) => mayEdit(service) || (role === 'viewer' && session.loginOf(service)),
  )
  const form = { purpose: offered[0]?.[0] ?? '', name: '', days: '90', domain: '', names: '' }
  const purposeNow = () => /** @type {Purpose} */ (purposes[form.purpose])
  const domains = await suggestDomains()
  /** @type {MadeToken} */
  let made
  return confirmDialog({
    title: 'New API token',
    confirm: 'Make the token',
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
      const answers = { domain: form.domain.toLowerCase(), names: form.names.toLowerCase() }
      const json = toTokenInput(purposeNow(), { ...form, ...answers })
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

/** @param {Purpose} purpose @param {Answers & { name: string, days: string }} form @param {string[]} domains */
const questions = ({ asks, service, role }, form, domains) => html`
  ${
    asks.includes('domain')
      ? html`<div class="field-pair">
        ${formField(form, 'domain', 'Domain', { hint: role ? 'Empty: all of your domains' : 'The domain that the name belongs to', placeholder: 'example.com', list: 'domain-names', isRequired: !role })}
        ${asks.includes('names') ? formField(form, 'names', 'Host names', { hint: 'Without the domain; several with commas', placeholder: 'home', isRequired: true }) : nothing}
      </div>
      <datalist id="domain-names">${domains.map((name) => html`<option value=${name}></option>`)}</datalist>`
      : nothing
  }
  <div class="field-pair">
    ${formField(form, 'name', 'Name of the token', { hint: 'The history shows it beside your name.', placeholder: 'Router at home', isRequired: true })}
    ${formField(form, 'days', 'Valid for', { options: isAdmin(service) ? [...spans, ['0', 'Never']] : spans })}
  </div>`

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
