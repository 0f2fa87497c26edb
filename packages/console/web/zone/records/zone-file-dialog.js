import { putZoneFile } from '../../api/domain-service.js'
import { html, nothing } from '../../core/html.js'
import { openDialog } from '../../ui/dialog.js'
import { checkbox, textArea } from '../../ui/form.js'
import { errorNotice } from '../../ui/states.js'

/**
 * @import { TaggedZone } from '../../api/domain-service.js'
 * @import { Changes } from '../../api/schema.d.ts'
 */

/**
 * Takes a zone file, pasted or dropped, and asks the service what it would change. Nothing is written: the answer goes
 * into the draft.
 * @param {string} domain
 * @param {TaggedZone} base
 * @returns {Promise<Changes | undefined>}
 */
export function openZoneFile(domain, { etag }) {
  let text = ''
  let isReplacing = false
  let isBusy = false
  /** @type {unknown} */
  let error
  return openDialog({
    title: 'Import a zone file',
    draw: ({ close, update }) => {
      const check = async () => {
        isBusy = true
        error = undefined
        update()
        try {
          const { zone } = await putZoneFile(domain, text, { dryRun: true, etag })
          const { added, removed, kept } = zone?.changes ?? { added: [], removed: [], kept: 0 }
          close({
            added,
            removed: isReplacing
              ? removed
              : removed.filter((old) => added.some((record) => isTwin(old, record))),
            kept,
          })
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      const drop = async (/** @type {DragEvent} */ event) => {
        const [file] = event.dataTransfer?.files ?? []
        if (!file) return
        event.preventDefault()
        text = await file.text()
        update()
      }
      return html`
        <div class="dialog-body" @drop=${drop} @dragover=${(/** @type {Event} */ event) => event.preventDefault()}>
          ${textArea({
            id: 'zone-file',
            label: 'Zone file',
            value: text,
            rows: 12,
            placeholder: `$ORIGIN ${domain}.\nwww 300 IN A 192.0.2.10`,
            hint: 'Paste it, or drop a file here: as BIND, octoDNS and other providers export it.',
            onInput: (value) => {
              text = value
              update()
            },
          })}
          ${checkbox({
            label: 'Remove records that are not in the file',
            isChecked: isReplacing,
            hint: 'Otherwise they stay beside the imported ones.',
            onChange: (value) => {
              isReplacing = value
            },
          })}
          ${error ? errorNotice(error) : nothing}
        </div>
        <footer class="dialog-footer">
          <button class="button" @click=${() => close()}>Cancel</button>
          <button class="button primary" ?disabled=${isBusy || text.trim() === ''} @click=${check}>
            ${isBusy ? 'Checking…' : 'Add to the draft'}
          </button>
        </footer>`
    },
  })
}

/**
 * @param {import('../../api/schema.d.ts').HostRecord} left
 * @param {import('../../api/schema.d.ts').HostRecord} right
 */
const isTwin = (left, right) =>
  left.name === right.name && left.type === right.type && left.address === right.address
