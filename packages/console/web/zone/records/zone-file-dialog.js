import { ApiError } from '../../api/problem.js'
import { writeZone } from '../../api/zones.js'
import { html, nothing } from '../../core/html.js'
import { openDialog } from '../../ui/dialog.js'
import { checkbox, textArea } from '../../ui/form.js'
import { errorNotice, notice } from '../../ui/states.js'
import { addChanges } from '../draft.js'
import { waysOut } from '../review/refusals.js'
import { isSameRecord } from '../zone-diff.js'
import { tableToZoneFile } from './spreadsheet.js'

/**
 * @import { WriteOptions } from '../../api/zones.js'
 * @import { WrittenZone } from '../../api/schema.d.ts'
 * @import { Draft } from '../draft.js'
 * @import { ZoneStore } from '../zone-store.js'
 * @typedef {{ line: number, text: string, message: string }} Skipped
 * @typedef {{ zone?: WrittenZone, skipped: Skipped[] }} Outcome
 */

/**
 * Takes a zone file or rows of a spreadsheet, pasted or dropped, and asks the service what they would change. Nothing is
 * written: the answer goes into the draft. A line that cannot be taken is named, and skipped.
 * @param {ZoneStore} store
 * @returns {Promise<Draft | undefined>} the draft with the changes
 */
export function openZoneFile({ domain, draft, base }) {
  let text = ''
  let isReplacing = false
  let isBusy = false
  let force = false
  let emailType = draft.emailType
  /** @type {Outcome | undefined} */
  let outcome
  /** @type {unknown} */
  let error
  const { zone, etag } = base.value ?? {}

  const merge = (/** @type {WrittenZone} */ { changes: { added, removed } }) => {
    const gone = removed.filter(
      (old) => isReplacing || added.some((each) => isSameRecord(old, each)),
    )
    const next = addChanges(draft, { added, removed: gone })
    const type = emailType ?? /^; domain-service email-type (\w+)/m.exec(text)?.[1]
    return type && type !== zone?.email_type ? { ...next, emailType: type } : next
  }

  return openDialog({
    title: 'Import records',
    draw: ({ close, update }) => {
      const check = async () => {
        isBusy = true
        error = undefined
        update()
        try {
          const lines = tableToZoneFile(text, domain)
          const settings = emailType ? `\n; domain-service email-type ${emailType}\n` : ''
          outcome = await preview(domain, lines + settings, { dryRun: true, etag, force })
          if (outcome.zone && outcome.skipped.length === 0) close(merge(outcome.zone))
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      const set = (/** @type {string} */ value) => {
        text = value
        outcome = undefined
        update()
      }
      const drop = async (/** @type {DragEvent} */ event) => {
        const [file] = event.dataTransfer?.files ?? []
        if (!file) return
        event.preventDefault()
        set(await file.text())
      }
      const ways = {
        chooseEmail: (/** @type {string} */ type) => {
          emailType = type
          void check()
        },
        force: () => {
          force = true
          void check()
        },
      }
      return html`
        <div class="dialog-body" @drop=${drop} @dragover=${(/** @type {Event} */ event) => event.preventDefault()}>
          ${textArea({
            id: 'zone-file',
            label: 'Zone file',
            value: text,
            rows: 12,
            placeholder: `$ORIGIN ${domain}.\nwww 300 IN A 192.0.2.10`,
            hint: 'Paste a zone file or rows of a spreadsheet (name, type, value, TTL), or drop a file here.',
            onInput: set,
          })}
          ${checkbox({
            label: 'Remove records that are not in the file',
            isChecked: isReplacing,
            hint: 'Otherwise they stay beside the imported ones.',
            onChange: (value) => {
              isReplacing = value
            },
          })}
          ${error ? html`${errorNotice(error)} ${waysOut(error, ways)}` : nothing}
          ${outcome ? skippedNotice(outcome.skipped) : nothing}
        </div>
        <footer class="dialog-footer">
          <button class="button" @click=${() => close()}>Cancel</button>
          ${
            outcome
              ? html`<button class="button primary" ?disabled=${!outcome.zone} @click=${() => outcome?.zone && close(merge(outcome.zone))}>Add the rest to the draft</button>`
              : html`<button class="button primary" ?disabled=${isBusy || text.trim() === ''} @click=${check}>
                ${isBusy ? 'Checking…' : 'Add to the draft'}
              </button>`
          }
        </footer>`
    },
  })
}

/**
 * The dry run, without the lines that the service cannot take.
 * @param {string} domain
 * @param {string} text
 * @param {WriteOptions} options
 * @returns {Promise<Outcome>}
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
        return lines[line - 1]
          ? [{ line, message: message.replaceAll(/\/line\/(\d+)/g, 'line $1') }]
          : []
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
  for (let at = line - 1; at === line - 1 || /^\s+\S/.test(lines[at] ?? ''); at += 1) {
    const text = lines[at] ?? ''
    lines[at] = ''
    if (text)
      taken.push({
        line: at + 1,
        text,
        message: at === line - 1 ? message : 'belongs to the line before it',
      })
  }
  return taken
}

/** @param {Skipped[]} skipped */
const skippedNotice = (skipped) =>
  notice(
    html`<p>These lines cannot be taken:</p>
      <ul>${skipped.map(({ line, text, message }) => html`<li>Line ${line} ${message}: <code>${text.replace('; domain-service record ', '')}</code></li>`)}</ul>`,
    'warn',
  )
