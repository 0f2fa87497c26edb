import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { poll } from '../core/poll.js'
import { Resource, View } from '../core/view.js'
import { openDialog } from '../ui/dialog.js'
import { formatCount, formatTime } from '../ui/format.js'
import { empty, show } from '../ui/states.js'
import { age, table } from '../ui/table.js'
import { attempt } from '../ui/toast.js'

/**
 * @import { Delivery, Webhook } from '../api/schema.d.ts'
 * @import { ServiceName } from '../core/services.js'
 */

/** What was sent to a webhook, and what came back, live. @param {ServiceName} service @param {Webhook} webhook */
export const openDeliveries = (service, { id, name, url }) =>
  openDialog({
    title: `Deliveries to ${name ?? url}`,
    className: 'wide',
    draw: () =>
      html`<webhook-deliveries class="dialog-body" .service=${service} .webhook=${id}></webhook-deliveries>`,
  })

const tones = { pending: 'accent', delivered: 'good', failed: 'bad' }

class WebhookDeliveries extends View {
  /** @type {ServiceName} */
  service = 'domains'
  webhook = ''
  #deliveries = new Resource(this, async (signal) => {
    const params = { id: this.webhook }
    const path = '/api/webhooks/{id}/deliveries'
    return (await get(this.service, path, { params, signal })).deliveries
  })

  opened() {
    poll(
      () => this.#deliveries.reload(),
      () => 3000,
      this.signal,
    )
  }

  template() {
    return show(
      this.#deliveries,
      (deliveries) =>
        deliveries.length > 0
          ? table(
              ['Event', 'State', 'Answer', 'Last try', ''],
              deliveries.map((each) => this.#row(each)),
              'cards',
            )
          : empty({
              icon: 'bell',
              title: 'Nothing was sent yet',
              text: 'Send a test, or wait for an event.',
            }),
      3,
    )
  }

  /** @param {Delivery} delivery */
  #row({ id, type, status, tries, at, next_at: next, ms, response_status: code, answer }) {
    return html`
      <tr>
        <th scope="row">${type}<br /><code class="muted">${id}</code></th>
        <td>
          <span class="chip ${tones[status]}">${status}</span>
          <span class="note">${formatCount(tries, 'try', 'tries')}${next ? `, again ${formatTime(next)}` : nothing}</span>
        </td>
        <td class="answer">${code ?? nothing} ${answer ? html`<code>${answer.slice(0, 200)}</code>` : nothing}</td>
        <td class="muted">${age(at)}, ${ms} ms</td>
        <td class="actions">
          <button class="button" aria-label="Send again: ${type}" @click=${() => this.#retry(id)}>Send again</button>
        </td>
      </tr>`
  }

  /** @param {string} delivery */
  #retry = (delivery) =>
    attempt(async () => {
      const params = { id: this.webhook, delivery }
      const path = '/api/webhooks/{id}/deliveries/{delivery}/retry'
      await send(this.service, 'post', path, { params })
      await this.#deliveries.reload()
    })
}

customElements.define('webhook-deliveries', WebhookDeliveries)
