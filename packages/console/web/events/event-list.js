import { get, session } from '../api/client.js'
import { offeredServices } from '../api/transport.js'
import { changeItem } from '../changes/change-item.js'
import { hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { select } from '../ui/form.js'
import { formatCount, formatDate, toUnicode } from '../ui/format.js'
import { empty, page, show } from '../ui/states.js'
import { age } from '../ui/table.js'
import { repeat } from '../vendor/directives/repeat.js'

const dayMs = 86_400_000
const mostShown = 500

/** What happens at both services, live: newest first, from a day ago. */
class EventList extends RouteView {
  /** @type {Map<Api.ServiceName, string>} the position after what was read */
  #next = new Map()
  /** @type {Api.Event[]} newest first */
  #seen = []
  #days = 1
  #events = new Resource(this, (signal) => this.#read(signal))

  pollMs = 3000

  /** @param {AbortSignal} signal */
  async #read(signal) {
    const services = offeredServices().filter((service) => session.loginOf(service))
    await Promise.all(services.map((service) => this.#readOf(service, signal)))
    this.#seen = this.#seen.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, mostShown)
    return this.#seen
  }

  // Follows `next` to the end.
  /** @param {Api.ServiceName} service @param {AbortSignal} signal */
  async #readOf(service, signal) {
    const after = this.#next.get(service) ?? idBefore(Date.now() - this.#days * dayMs)
    const query = { after, limit: 200 }
    const { events, next } = await get(service, '/api/events', { query, signal })
    this.#next.set(service, next)
    this.#seen.push(...events)
    if (events.length === 200) await this.#readOf(service, signal)
  }

  #showMore = () => {
    this.#days = this.#days === 1 ? 7 : 29
    this.#next.clear()
    this.#seen = []
    void this.#events.reload()
  }

  template() {
    const types = [...new Set(this.#seen.map(({ type }) => type))].sort()
    const { type = '' } = this.values('type')
    const options = [['', 'All types'], ...types]
    const filter = select('Type', options, type, (type) => this.open({ type }))
    const content = show(this.#events, () => this.#list(), 6)
    return page('Events', filter, content)
  }

  #list() {
    const { type: wanted } = this.values('type')
    const shown = this.#seen.filter(({ type }) => !wanted || type === wanted)
    const more =
      this.#days < 29 ? html`<button class="button" @click=${this.#showMore}>Show older events</button>` : nothing
    const hint = 'Changes of records and files appear here while you look.'
    if (shown.length === 0) return empty('bell', 'Nothing has happened', hint, more)
    return html`
      <ol class="timeline" aria-live="polite">
        ${repeat(shown, ({ id }) => id, eventItem)}
      </ol>
      ${more}`
  }
}

/** @param {Api.Event} event */
function eventItem({ type, at, by, data: anyData }) {
  const data = /** @type {Record<string, any>} */ (anyData)
  const name = html`<span class="chip ${type.endsWith('failing') || type.endsWith('outside') ? 'warn' : ''}">${type}</span>`
  if (type.startsWith('zone.') || type.startsWith('change.')) {
    const title = html`${name} ${domainLink(data.domain)}`
    return changeItem(/** @type {any} */ (data), { title }) // As GET /api/changes has it.
  }
  return html`
    <li class="moment">
      <div class="moment-head">
        ${name} ${type.startsWith('domain.') ? domainLink(data.name) : nothing}
        ${by ? html`<strong>${by}</strong>` : nothing}
        <span>${summaryOf(type, data)}</span>
        <span class="muted">${age(at)}</span>
      </div>
    </li>`
}

/** @param {string} type @param {Record<string, any>} data */
function summaryOf(type, data) {
  if (type === 'files.changed') {
    const paths = data.paths ?? []
    const count = data.added + data.replaced + data.removed || paths.length // No counts: some are hidden.
    const more = data.prefix ? `, ${formatCount(count, 'file')}` : ` and ${formatCount(count - 1, 'more file')}`
    return html`${data.action} <code>${data.prefix ?? paths[0] ?? ''}</code>${count > 1 ? more : nothing}`
  }
  if (type === 'version.created') return html`version <code>${data.version}</code>`
  if (type === 'link.used_up') return html`<code>${data.path}</code>`
  if (type === 'domain.expiring')
    return `expires ${formatDate(data.expires_on)}, in ${formatCount(data.days_left, 'day')}`
  return data.registrar ?? nothing
}

// Ids are ULIDs: twelve characters of time (here with ten bits more than milliseconds) in Crockford's base 32.
/** The position before all events since a time. @param {number} milliseconds since 1970 */
const idBefore = (milliseconds) =>
  [...(milliseconds * 1024).toString(32).padStart(12, '0').padEnd(26, '0')]
    .map((digit) => '0123456789ABCDEFGHJKMNPQRSTVWXYZ'[Number.parseInt(digit, 32)])
    .join('')

/** @param {string} domain */
const domainLink = (domain) => html`<a href=${hrefTo(['domains', domain], { tab: 'history' })}>${toUnicode(domain)}</a>`

customElements.define('event-list', EventList)
