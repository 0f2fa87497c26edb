import { send } from '../api/client.js'
import { html } from '../core/html.js'
import { confirmDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { secretOnce } from '../ui/secret-once.js'

/** @import { ServiceName } from '../core/services.js' */

const typesOf = {
  domains: [
    ...['zone.changed', 'zone.changed_outside', 'change.proposed', 'change.refused'],
    ...['change.unconfirmed', 'domain.expiring', 'domain.added', 'domain.removed'],
    ...['registrar.failing', 'registrar.recovered'],
  ],
  files: ['files.changed', 'version.created'],
}

/** Adds a webhook and shows its secret, this once. @param {ServiceName} service @returns {Promise<boolean>} whether one was made */
export function openWebhookDialog(service) {
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
          checkbox({
            label: type,
            isChecked: types.has(type),
            onChange: (isChecked) => void (isChecked ? types.add(type) : types.delete(type)),
          }),
        )}
      </fieldset>
      ${formField(form, 'limits', limitWords.label, { hint: limitWords.hint })}`,
    action: async () => {
      const limits = form.limits.split(/[\s,]+/).filter(Boolean)
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
