import { ApiError } from '../../api/problem.js'
import { html, nothing } from '../../core/html.js'
import { toPatch } from '../draft.js'
import { describe } from '../zone-diff.js'

/**
 * Refused writes of a zone: which records are meant, and the ways out.
 * @import { ZoneStore } from '../zone-store.js'
 */

/**
 * Buttons for what the person may decide.
 * @param {unknown} error
 * @param {{ chooseEmail?: (type: string) => void, force: () => void }} ways
 */
export function waysOut(error, { chooseEmail, force }) {
  const code = error instanceof ApiError ? error.code : ''
  if (code === 'unsupported_records') {
    return html`<div class="button-row">
      <button class="button danger" @click=${force}>Write anyway and lose those records</button>
    </div>`
  }
  if (code !== 'email_type_conflict' || !chooseEmail) return nothing
  return html`<div class="button-row">
    <button class="button" @click=${() => chooseEmail('MX')}>Use own mail servers (MX)</button>
  </div>`
}

/** The same refusal with records in place of JSON pointers into the patch. @param {unknown} error @param {ZoneStore} store */
export function nameFaults(error, { draft, base }) {
  if (!(error instanceof ApiError) || error.errors.length === 0 || !base.value) return error
  const { zone } = base.value
  const { add = [], update = [] } = toPatch(draft, zone)
  const named = (/** @type {string} */ text) =>
    text.replace(/\/(add|update)\/(\d+)(?:\/\w+)?/g, (pointer, list, at) => {
      const id = update[at]?.id
      const record = list === 'add' ? add[at] : id && (draft.records.get(id) ?? undefined)
      return record ? describe(record) : pointer
    })
  const errors = error.errors.map(({ path, message }) => ({
    path: named(path),
    message: named(message),
  }))
  return new ApiError({ ...error, detail: error.message, errors })
}
