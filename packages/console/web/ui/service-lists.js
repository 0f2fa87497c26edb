import { session } from '../api/client.js'
import { offeredServices, titleOf } from '../api/transport.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { icon, show } from './states.js'

/** Base of views that list the same at each service. @template Item */
export class ServiceLists extends RouteView {
  lists = offeredServices().map((service) => ({
    service,
    items: new Resource(this, (signal) => this.read(service, signal)),
  }))

  opened() {
    session.addEventListener('change', () => this.reload(), { signal: this.signal })
    super.opened()
  }

  /** Whether the person sees the list of a service. @param {Api.ServiceName} service */
  offers(service) {
    return session.loginOf(service) !== undefined
  }

  /** @param {Api.ServiceName} _service @param {AbortSignal} _signal @returns {Promise<Item[]>} */
  async read(_service, _signal) {
    return []
  }

  get offered() {
    return this.lists.filter(({ service }) => this.offers(service))
  }

  /**
   * A section for each service.
   * @param {(service: Api.ServiceName, items: Item[]) => unknown} draw
   * @param {string} [adds] the words of a button beside the title
   * @param {(service: Api.ServiceName) => Promise<boolean>} [add] what it does
   */
  sections(draw, adds, add, lists = this.offered) {
    return lists.map(({ service, items }) => {
      const title = lists.length < this.offered.length ? 'Both services' : titleOf(service)
      return html`
        <section aria-label=${titleOf(service)} class="token-section">
          <div class="toolbar"><h2>${title}</h2>${adds ? html`<button class="button primary" @click=${() => this.reloadAfter(add?.(service))}>${icon('plus')} ${adds}</button>` : nothing}</div>
          ${show(items, (list) => draw(service, list), 3)}
        </section>`
    })
  }

  reload() {
    for (const { items } of this.offered) void items.reload()
  }
}

/**
 * The role of a user, an API token or a trust, and its limits.
 * @param {Partial<Pick<Api.ApiToken, 'role' | 'domains' | 'folders' | 'writes' | 'records' | 'networks'>>} rights
 */
export function rightsChips({ role, domains, folders, writes, records, networks }) {
  const limits = [...(domains ?? []), ...(folders ?? []), ...(writes ? ['proposes'] : [])]
  return html`
    ${role ? html`<span class="chip">${role}</span>` : nothing}
    ${limits.map((limit) => html`<span class="chip accent">${limit}</span>`)}
    ${records?.map(({ name, types }) => html`<span class="chip">${name} ${types.join(' ')}</span>`) ?? nothing}
    ${networks?.map((network) => html`<span class="chip">from ${network}</span>`) ?? nothing}`
}
