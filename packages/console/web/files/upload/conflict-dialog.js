import { html, nothing } from '../../core/html.js'
import { openDialog } from '../../ui/dialog.js'
import { checkbox } from '../../ui/form.js'
import { formatCount } from '../../ui/format.js'

/**
 * Asks what to do with a name that exists. Closing the dialog skips the file.
 * @param {string} path
 * @param {number} others how many further uploads are open
 * @returns {Promise<{ choice: import('./upload-queue.js').Choice, forAll: boolean } | undefined>}
 */
export function askAboutExisting(path, others) {
  let forAll = false
  return openDialog({
    title: 'This file exists',
    className: 'small',
    draw: ({ close }) => html`
      <div class="dialog-body">
        <p>There is a file at <code>${path}</code> already.</p>
        ${
          others > 0
            ? checkbox({
                label: `Do the same for all that exist (${formatCount(others, 'more upload')})`,
                isChecked: forAll,
                onChange: (value) => {
                  forAll = value
                },
              })
            : nothing
        }
      </div>
      <footer class="dialog-footer">
        <button class="button" @click=${() => close({ choice: 'skip', forAll })}>Skip</button>
        <button class="button" @click=${() => close({ choice: 'replace', forAll })}>Replace</button>
        <button class="button primary" @click=${() => close({ choice: 'keep-both', forAll })}>Keep both</button>
      </footer>`,
  })
}
