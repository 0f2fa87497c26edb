import { get, isAdmin, send } from '../api/client.js'
import { html, nothing, Resource, View } from '../core/view.js'
import { secretOnce } from '../ui/copy.js'
import { confirmDialog, openDialog, removalDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { formatCount, formatDate, formatTime, splitFolders, splitList } from '../ui/format.js'
import { ServiceLists } from '../ui/service-lists.js'
import { attempt, empty, page, show, toast } from '../ui/states.js'
import { age, list } from '../ui/table.js'

/**
 * Where events are sent: add with a secret that is shown once, test, pause, look at the deliveries. For admins.
 * @extends {ServiceLists<Api.Webhook>}
 */
class WebhookList extends ServiceLists {
  offers = isAdmin

  /** @param {Api.ServiceName} service @param {AbortSignal} signal */
  async read(service, signal) {
    return (await get(service, '/api/webhooks', { signal })).webhooks
  }

  template() {
    const content = html`
      <p class="muted">Events are sent to these addresses, signed, and again until they are taken. <a href="#/events">See the events.</a></p>
      ${this.sections((service, webhooks) => this.#list(service, webhooks), 'New webhook', openWebhookDialog)}`
    return page('Webhooks', '', content)
  }

  /** @param {Api.ServiceName} service @param {Api.Webhook[]} webhooks */
  #list(service, webhooks) {
    const hint = 'Add one for a chat, a mailbox or a program that wants to be told.'
    if (webhooks.length === 0) return empty('bell', 'No webhooks yet', hint)
    return list(
      webhooks,
      {
        Name: ({ name, url }) => html`${name ? html`<strong>${name}</strong><br />` : nothing}<code>${url}</code>`,
        Sends: (webhook) => html`
          ${webhook.paused ? html`<span class="chip warn">paused</span>` : nothing}
          ${(webhook.types ?? ['all types']).map((type) => html`<span class="chip">${type}</span>`)}
          ${(('domains' in webhook ? webhook.domains : webhook.folders) ?? []).map((limit) => html`<span class="chip accent">${limit}</span>`)}`,
        Added: ({ created_at: at, created_by: by }) => `${formatDate(at)} by ${by}`,
      },
      (webhook) => [
        webhook.name ?? webhook.url,
        ['Deliveries', () => openDeliveries(service, webhook)],
        ['Test', () => this.#test(service, webhook.id)],
        [webhook.paused ? 'Resume' : 'Pause', () => this.#pause(service, webhook)],
        ['Delete', () => this.#delete(service, webhook)],
      ],
    )
  }

  /** @param {Api.ServiceName} service @param {string} id */
  #test = (service, id) =>
    attempt(async () => {
      const delivery = await send(service, 'post', '/api/webhooks/{id}/test', { params: { id } })
      const { status, response_status: code, answer } = delivery
      const tone = status === 'delivered' ? 'good' : 'bad'
      toast(`Test ${status}: ${code ?? answer ?? 'no response'}`, tone)
    })

  /** @param {Api.ServiceName} service @param {Api.Webhook} webhook */
  #pause = (service, { id, paused }) =>
    attempt(async () => {
      const json = { paused: !paused }
      await send(service, 'patch', '/api/webhooks/{id}', { params: { id }, json })
      this.reload()
    })

  /** @param {Api.ServiceName} service @param {Api.Webhook} webhook */
  #delete(service, { id, name, url }) {
    const words = html`Nothing more is sent to <code>${url}</code>, neither what still waits for it. This cannot be undone.`
    const remove = () => send(service, 'delete', '/api/webhooks/{id}', { params: { id } })
    return this.reloadAfter(removalDialog('Delete', name ?? 'this webhook', words, remove))
  }
}

customElements.define('webhook-list', WebhookList)

const zoneTypes = ['zone.changed', 'zone.changed_outside']
const changeTypes = ['change.proposed', 'change.refused', 'change.unconfirmed']
const accountTypes = ['domain.expiring', 'domain.added', 'domain.removed', 'registrar.failing']
const typesOf = {
  domains: [...zoneTypes, ...changeTypes, ...accountTypes, 'registrar.recovered'],
  files: ['files.changed', 'version.created', 'link.used_up'],
}

const words = html`<strong>Copy the secret now.</strong> The receiver checks signatures with it. It is shown this once.`

/** Adds a webhook and shows its secret, this once. @param {Api.ServiceName} service @returns {Promise<boolean>} whether one was made */
function openWebhookDialog(service) {
  const form = { url: '', name: '', limits: '' }
  /** @type {Set<string>} */
  const types = new Set()
  let secret = ''
  const [limit, example] = service === 'domains' ? ['domains', ''] : ['folders', ', such as docs/']
  return confirmDialog({
    title: 'New webhook',
    confirm: 'Add',
    body: () => html`
      ${formField(form, 'url', 'Address', { type: 'url', isRequired: true, placeholder: 'https://hooks.example.com/changes', hint: 'Of a program that takes signed events (Standard Webhooks)' })}
      ${formField(form, 'name', 'Name', { hint: 'To know it again' })}
      <fieldset class="choices">
        <legend>Which events? None chosen: all</legend>
        ${typesOf[service].map((type) => checkbox(type, types.has(type), (isChecked) => types[isChecked ? 'add' : 'delete'](type)))}
      </fieldset>
      ${formField(form, 'limits', `Only these ${limit}`, { hint: `With commas${example}. Empty: all` })}`,
    action: async () => {
      const limits = (service === 'domains' ? splitList : splitFolders)(form.limits)
      const json = {
        url: form.url,
        ...(form.name && { name: form.name }),
        ...(types.size > 0 && { types: [...types] }),
        ...(limits.length > 0 && { [limit]: limits }),
      }
      ;({ secret } = await send(service, 'post', '/api/webhooks', { json }))
    },
    done: () => secretOnce(words, secret, 'Secret'),
  })
}

/** What was sent to a webhook, and what came back, live. @param {Api.ServiceName} service @param {Api.Webhook} webhook */
const openDeliveries = (service, { id, name, url }) =>
  openDialog({
    title: `Deliveries to ${name ?? url}`,
    className: 'wide',
    draw: () => html`<webhook-deliveries class="dialog-body" .service=${service} .webhook=${id}></webhook-deliveries>`,
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

  pollMs = 3000

  template() {
    return show(this.#deliveries, (deliveries) => this.#list(deliveries), 3)
  }

  /** @param {Api.Delivery[]} deliveries */
  #list(deliveries) {
    if (deliveries.length === 0) return empty('bell', 'Nothing was sent yet', 'Send a test, or wait for an event.')
    return list(
      deliveries,
      {
        Event: ({ type, id }) => html`${type}<br /><code class="muted">${id}</code>`,
        State: ({ status, tries, next_at: next }) => html`
          <span class="chip ${tones[status]}">${status}</span>
          <span class="note">${formatCount(tries, 'try', 'tries')}${next ? `, again ${formatTime(next)}` : nothing}</span>`,
        Answer: ({ response_status: code, answer }) =>
          html`${code ?? nothing} ${answer ? html`<code>${answer.slice(0, 200)}</code>` : nothing}`,
        'Last try': ({ at, ms }) => html`${age(at)}, ${ms} ms`,
      },
      ({ type, id }) => [type, ['Send again', () => this.#retry(id)]],
    )
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
