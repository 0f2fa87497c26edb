import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { isAdmin } from '../core/session.js'
import { confirmDialog } from '../ui/dialog.js'
import { formatDate } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { ServiceLists } from '../ui/service-lists.js'
import { empty } from '../ui/states.js'
import { table } from '../ui/table.js'
import { attempt, toast } from '../ui/toast.js'
import { openDeliveries } from './deliveries-dialog.js'
import { openWebhookDialog } from './webhook-dialog.js'

/**
 * @import { Webhook } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/**
 * Where events are sent: add with a secret that is shown once, test, pause, look at the deliveries. For admins.
 * @extends {ServiceLists<Webhook>}
 */
class WebhookList extends ServiceLists {
  /** @param {ServiceName} service */
  offers(service) {
    return isAdmin(service)
  }

  /** @param {ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    return (await get(service, '/api/webhooks', { signal })).webhooks
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header"><h1>Webhooks</h1></header>
        <p class="muted">Events are sent to these addresses, signed, and again until they are taken. <a href="#/events">See the events.</a></p>
        ${this.sections(
          (service, webhooks) => this.#table(service, webhooks),
          (service) =>
            html`<button class="button primary" @click=${() => this.#create(service)}>${icon('plus')} New webhook</button>`,
        )}
      </div>`
  }

  /** @param {ServiceName} service @param {Webhook[]} webhooks */
  #table(service, webhooks) {
    if (webhooks.length === 0) {
      return empty({
        icon: 'bell',
        title: 'No webhooks yet',
        text: 'Add one for a chat, a mailbox or a program that wants to be told.',
      })
    }
    const rows = webhooks.map((webhook) => this.#row(service, webhook))
    return table(['Name', 'Sends', 'Added', ''], rows, 'cards')
  }

  /** @param {ServiceName} service @param {Webhook} webhook */
  #row(service, webhook) {
    const { id, name, url, types, paused, created_at: at, created_by: by } = webhook
    const limits = 'domains' in webhook ? webhook.domains : webhook.folders
    /** @param {string} words @param {() => unknown} run */
    const button = (words, run) =>
      html`<button class="button" aria-label="${words}: ${name ?? url}" @click=${run}>${words}</button>`
    return html`
      <tr>
        <th scope="row">${name ? html`<strong>${name}</strong><br />` : nothing}<code>${url}</code></th>
        <td>
          ${paused ? html`<span class="chip warn">paused</span>` : nothing}
          ${(types ?? ['all types']).map((type) => html`<span class="chip">${type}</span>`)}
          ${(limits ?? []).map((limit) => html`<span class="chip accent">${limit}</span>`)}
        </td>
        <td class="muted">${formatDate(at)} by ${by}</td>
        <td class="actions">
          ${button('Deliveries', () => openDeliveries(service, webhook))}
          ${button('Test', () => this.#test(service, id))}
          ${button(paused ? 'Resume' : 'Pause', () => this.#pause(service, id, !paused))}
          ${button('Delete', () => this.#remove(service, webhook))}
        </td>
      </tr>`
  }

  /** @param {ServiceName} service */
  async #create(service) {
    if (await openWebhookDialog(service)) this.reload()
  }

  /** @param {ServiceName} service @param {string} id */
  #test = (service, id) =>
    attempt(async () => {
      const delivery = await send(service, 'post', '/api/webhooks/{id}/test', { params: { id } })
      toast(
        `Test ${delivery.status}: ${delivery.response_status ?? delivery.answer ?? 'no response'}`,
        delivery.status === 'delivered' ? 'good' : 'bad',
      )
    })

  /** @param {ServiceName} service @param {string} id @param {boolean} paused */
  #pause = (service, id, paused) =>
    attempt(async () => {
      await send(service, 'patch', '/api/webhooks/{id}', { params: { id }, json: { paused } })
      this.reload()
    })

  /** @param {ServiceName} service @param {Webhook} webhook */
  async #remove(service, { id, name, url }) {
    const isDone = await confirmDialog({
      title: `Delete ${name ?? 'this webhook'}?`,
      body: html`<p>Nothing more is sent to <code>${url}</code>, neither what still waits for it. This cannot be undone.</p>`,
      confirm: 'Delete',
      danger: true,
      action: () => send(service, 'delete', '/api/webhooks/{id}', { params: { id } }),
    })
    if (isDone) this.reload()
  }
}

customElements.define('webhook-list', WebhookList)
