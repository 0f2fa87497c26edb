import { html, nothing } from '../core/html.js'
import { openDialog } from '../ui/dialog.js'
import { checkbox } from '../ui/form.js'
import { formatCount } from '../ui/format.js'

/** @typedef {'replace' | 'keep-both' | 'skip'} Choice */

/**
 * Asks what to do with a name that exists, or with several. Closing the dialog skips them.
 * @param {unknown} body which, and what is there
 * @param {number} [others] how many others the same can be done with
 * @returns {Promise<{ choice: Choice, forAll: boolean } | undefined>}
 */
export function askAboutExisting(body, others = 0) {
  let forAll = false
  return openDialog({
    title: 'This file exists',
    className: 'small',
    draw: ({ close }) => html`
      <div class="dialog-body">
        ${body}
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
