import { ApiError } from '../../api/transport.js'
import { html, nothing } from '../../core/view.js'
import { confirmDialog } from '../../ui/dialog.js'
import { checkbox, field } from '../../ui/form.js'
import { notice } from '../../ui/states.js'
import { addChanges } from '../draft.js'
import { isSameRecord } from '../zone-diff.js'
import { writeZone } from '../zone-store.js'
import { tableToZoneFile } from './spreadsheet.js'

/** @import { WriteOptions, ZoneStore } from '../zone-store.js' @import { Draft } from '../draft.js' */

/** @typedef {{ line: number, message: string }} Skipped */

/**
 * Takes a zone file or rows of a spreadsheet, pasted or dropped, and asks the service what they would change. Nothing is
 * written: the answer goes into the draft. A line that cannot be taken is named, and skipped.
 * @param {ZoneStore} store
 * @returns {Promise<Draft | undefined>} the draft with the changes
 */
export async function openZoneFile({ domain, draft, base }) {
  let text = ''
  let isReplacing = false
  let force = false
  let emailType = draft.emailType
  /** @type {{ zone?: Api.WrittenZone, skipped: Skipped[] } | undefined} with skipped lines, shown before the rest is taken */
  let outcome
  const { zone, etag } = base.value ?? {}
  const set = (/** @type {string} */ value, /** @type {() => void} */ update) => {
    text = value
    outcome = undefined
    update()
  }
  const isDone = await confirmDialog({
    title: 'Import records',
    get confirm() {
      return outcome ? 'Add the rest to the draft' : 'Add to the draft'
    },
    isReady: () => text.trim() !== '' && (!outcome || outcome.zone !== undefined),
    ways: () => ({
      email_type_conflict: ['Use own mail servers (MX)', () => (emailType = 'MX')],
      unsupported_records: ['Go on and lose those records', () => (force = true)],
    }),
    body: (/** @type {() => void} */ update) => html`
      <div @drop=${(/** @type {DragEvent} */ event) => takeDropped(event, (value) => set(value, update))} @dragover=${(/** @type {Event} */ event) => event.preventDefault()}>
        ${field({
          id: 'zone-file',
          label: 'Zone file',
          value: text,
          rows: 12,
          placeholder: `$ORIGIN ${domain}.\nwww 300 IN A 192.0.2.10`,
          hint: 'Paste a zone file or rows of a spreadsheet (name, type, value, TTL), or drop a file here.',
          onInput: (value) => set(value, update),
        })}
      </div>
      ${checkbox('Remove records that are not in the file', isReplacing, (value) => (isReplacing = value), 'Otherwise they stay beside the imported ones.')}
      ${outcome ? skippedNotice(outcome.skipped, text) : nothing}`,
    action: async () => {
      if (outcome) return true
      const settings = emailType ? `\n; domain-service email-type ${emailType}\n` : ''
      const lines = tableToZoneFile(text, domain) + settings
      outcome = await preview(domain, lines, { dryRun: true, etag, force })
      return outcome.skipped.length === 0
    },
  })
  if (!isDone || !outcome?.zone) return undefined
  const { added, removed } = outcome.zone.changes
  const gone = removed.filter((old) => isReplacing || added.some((each) => isSameRecord(old, each)))
  const next = addChanges(draft, { added, removed: gone })
  const type = emailType ?? /^; domain-service email-type (\w+)/m.exec(text)?.[1]
  return type && type !== zone?.email_type ? { ...next, emailType: type } : next
}

/** @param {DragEvent} event @param {(text: string) => void} take */
async function takeDropped(event, take) {
  const [file] = event.dataTransfer?.files ?? []
  if (!file) return
  event.preventDefault()
  take(await file.text())
}

/**
 * The dry run, without the lines that the service cannot take.
 * @param {string} domain
 * @param {string} text
 * @param {WriteOptions} options
 */
async function preview(domain, text, options) {
  const lines = text.split('\n')
  /** @type {Skipped[]} */
  const skipped = []
  for (;;) {
    try {
      const headers = { 'content-type': 'text/dns' }
      const message = { method: 'PUT', body: lines.join('\n'), headers }
      const { zone } = await writeZone(domain, 'zonefile', message, options)
      if (zone) return { zone, skipped: skipped.sort((a, b) => a.line - b.line) }
    } catch (error) {
      const faults = error instanceof ApiError ? error.errors : []
      const refused = faults.flatMap(({ path, message }) => {
        const line = Number(/^\/line\/(\d+)/.exec(path)?.[1])
        return lines[line - 1] ? [{ line, message: message.replaceAll(/\/line\/(\d+)/g, 'line $1') }] : []
      })
      const isEmpty = error instanceof ApiError && error.code === 'malformed_body'
      if (isEmpty && skipped.length > 0) return { zone: undefined, skipped }
      if (refused.length === 0) throw error
      for (const { line, message } of refused) skipped.push(...takeOut(lines, line, message))
    }
  }
}

// Lines that begin with a space belong to the one before them: they would get the name of another.
/** @param {string[]} lines @param {number} line @param {string} message */
function takeOut(lines, line, message) {
  /** @type {Skipped[]} */
  const taken = []
  for (let at = line; at === line || /^\s+\S/.test(lines[at - 1] ?? ''); at += 1) {
    const reason = at === line ? message : 'belongs to the line before it'
    if (lines[at - 1]) taken.push({ line: at, message: reason })
    lines[at - 1] = ''
  }
  return taken
}

/** @param {Skipped[]} skipped @param {string} pasted */
const skippedNotice = (skipped, pasted) =>
  notice(
    html`<p>These lines cannot be taken:</p>
      <ul>${skipped.map(({ line, message }) => html`<li>Line ${line} ${message}: <code>${pasted.split('\n')[line - 1]}</code></li>`)}</ul>`,
    'bad',
  )
