import { get, isAdmin, send } from '../api/client.js'
import { html, nothing, Resource, View } from '../core/view.js'
import { secretOnce } from '../ui/clipboard.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { formatCount, formatDate, formatTime, splitList } from '../ui/format.js'
import { ServiceLists } from '../ui/service-lists.js'
import { attempt, empty, icon, page, show, toast } from '../ui/states.js'
import { age, table } from '../ui/table.js'

/**
 * Where events are sent: add with a secret that is shown once, test, pause, look at the deliveries. For admins.
 * @extends {ServiceLists<Api.Webhook>}
 */
class WebhookList extends ServiceLists {
  /** @param {Api.ServiceName} service */
  offers(service) {
    return isAdmin(service)
  }

  /** @param {Api.ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    return (await get(service, '/api/webhooks', { signal })).webhooks
  }

  template() {
    return page(
      'Webhooks',
      '',
      html`
        <p class="muted">Events are sent to these addresses, signed, and again until they are taken. <a href="#/events">See the events.</a></p>
        ${this.sections(
          (service, webhooks) => this.#table(service, webhooks),
          (service) =>
            html`<button class="button primary" @click=${() => this.reloadAfter(openWebhookDialog(service))}>${icon('plus')} New webhook</button>`,
        )}`,
    )
  }

  /** @param {Api.ServiceName} service @param {Api.Webhook[]} webhooks */
  #table(service, webhooks) {
    const rows = webhooks.map((webhook) => this.#row(service, webhook))
    const hint = 'Add one for a chat, a mailbox or a program that wants to be told.'
    return rows.length > 0
      ? table(['Name', 'Sends', 'Added', ''], rows)
      : empty('bell', 'No webhooks yet', hint)
  }

  /** @param {Api.ServiceName} service @param {Api.Webhook} webhook */
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

  /** @param {Api.ServiceName} service @param {string} id */
  #test = (service, id) =>
    attempt(async () => {
      const delivery = await send(service, 'post', '/api/webhooks/{id}/test', { params: { id } })
      toast(
        `Test ${delivery.status}: ${delivery.response_status ?? delivery.answer ?? 'no response'}`,
        delivery.status === 'delivered' ? 'good' : 'bad',
      )
    })

  /** @param {Api.ServiceName} service @param {string} id @param {boolean} paused */
  #pause = (service, id, paused) =>
    attempt(async () => {
      await send(service, 'patch', '/api/webhooks/{id}', { params: { id }, json: { paused } })
      this.reload()
    })

  /** @param {Api.ServiceName} service @param {Api.Webhook} webhook */
  #remove = (service, { id, name, url }) =>
    this.reloadAfter(
      confirmDialog({
        title: `Delete ${name ?? 'this webhook'}?`,
        body: html`<p>Nothing more is sent to <code>${url}</code>, neither what still waits for it. This cannot be undone.</p>`,
        confirm: 'Delete',
        danger: true,
        action: () => send(service, 'delete', '/api/webhooks/{id}', { params: { id } }),
      }),
    )
}

customElements.define('webhook-list', WebhookList)

const typesOf = {
  domains: [
    ...['zone.changed', 'zone.changed_outside', 'change.proposed', 'change.refused'],
    ...['change.unconfirmed', 'domain.expiring', 'domain.added', 'domain.removed'],
    ...['registrar.failing', 'registrar.recovered'],
  ],
  files: ['files.changed', 'version.created'],
}

/** Adds a webhook and shows its secret, this once. @param {Api.ServiceName} service @returns {Promise<boolean>} whether one was made */
function openWebhookDialog(service) {
  const form = { url: '', name: '', limits: '' }
  /** @type {Set<string>} */
  const types = new Set()
  let secret = ''
  const limitWords =
    service === 'domains'
      ? { label: 'Only these domains', hint: 'With commas. Empty: all' }
      : { label: 'Only these folders', hint: 'With commas, such as docs/. Empty: all' }
  return confirmDialog({
    title: 'New webhook',
    confirm: 'Add',
    body: () => html`
      ${formField(form, 'url', 'Address', { type: 'url', isRequired: true, placeholder: 'https://hooks.example.com/changes', hint: 'Of a program that takes signed events (Standard Webhooks)' })}
      ${formField(form, 'name', 'Name', { hint: 'To know it again' })}
      <fieldset class="choices">
        <legend>Which events? None chosen: all</legend>
        ${typesOf[service].map((type) =>
          checkbox(type, types.has(type), (isChecked) =>
            isChecked ? types.add(type) : types.delete(type),
          ),
        )}
      </fieldset>
      ${formField(form, 'limits', limitWords.label, { hint: limitWords.hint })}`,
    action: async () => {
      const limits = splitList(form.limits)
      const json = {
        url: form.url,
        ...(form.name && { name: form.name }),
        ...(types.size > 0 && { types: [...types] }),
        ...(limits.length > 0 && { [service === 'domains' ? 'domains' : 'folders']: limits }),
      }
      ;({ secret } = await send(service, 'post', '/api/webhooks', { json }))
    },
    done: () =>
      secretOnce(
        html`<strong>Copy the secret now.</strong> The receiver checks signatures with it. It is shown this once.`,
        secret,
        'Secret',
      ),
  })
}

/** What was sent to a webhook, and what came back, live. @param {Api.ServiceName} service @param {Api.Webhook} webhook */
const openDeliveries = (service, { id, name, url }) =>
  openDialog({
    title: `Deliveries to ${name ?? url}`,
    className: 'wide',
    draw: () =>
      html`<webhook-deliveries class="dialog-body" .service=${service} .webhook=${id}></webhook-deliveries>`,
  })

const tones = { pending: 'accent', delivered: 'good', failed: 'bad' }

class WebhookDeliveries extends View {
  /** @type {Api.ServiceName} */
  service = 'domains'
  webhook = ''
  #deliveries = new Resource(this, async (signal) => {
    const params = { id: this.webhook }
    const path = '/api/webhooks/{id}/deliveries'
    return (await get(this.service, path, { params, signal })).deliveries
  })

  opened() {
    this.poll(() => 3000)
  }

  template() {
    const draw = (/** @type {Api.Delivery[]} */ deliveries) => {
      const rows = deliveries.map((each) => this.#row(each))
      return rows.length > 0
        ? table(['Event', 'State', 'Answer', 'Last try', ''], rows)
        : empty('bell', 'Nothing was sent yet', 'Send a test, or wait for an event.')
    }
    return show(this.#deliveries, draw, 3)
  }

  /** @param {Api.Delivery} delivery */
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
      await this.reload()
    })
}

customElements.define('webhook-deliveries', WebhookDeliveries)
