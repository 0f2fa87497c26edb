import { createVersion } from '../api/static-service.js'
import { html } from '../core/html.js'
import { openDialog } from '../ui/dialog.js'
import { textArea, textField } from '../ui/form.js'
import { errorNotice } from '../ui/states.js'
import { toast } from '../ui/toast.js'

const versionPattern = /^[A-Za-z0-9._+-]{1,64}$/

/** Creates a version. @returns {Promise<boolean>} whether one was created */
export async function versionDialog() {
  let version = ''
  let changelog = ''
  let isBusy = false
  /** @type {unknown} */
  let error
  const isDone = await openDialog({
    title: 'New version',
    draw: ({ close, update }) => {
      const fault =
        version !== '' && !versionPattern.test(version)
          ? 'Letters, digits and . _ + - only, up to 64'
          : undefined
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault()
        isBusy = true
        error = undefined
        update()
        try {
          await createVersion({ version, changelog })
          close(true)
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      return html`
        <form class="dialog-form" @submit=${submit}>
          <div class="dialog-body">
            ${textField({
              id: 'version',
              label: 'Version',
              value: version,
              fault,
              placeholder: '1.4.0',
              isRequired: true,
              onInput: (value) => {
                version = value.trim()
                update()
              },
            })}
            ${textArea({
              id: 'changelog',
              label: 'Changelog',
              value: changelog,
              rows: 8,
              placeholder: 'What is new',
              onInput: (value) => {
                changelog = value
              },
            })}
            ${errorNotice(error)}
          </div>
          <footer class="dialog-footer">
            <button class="button" type="button" @click=${() => close()}>Cancel</button>
            <button class="button primary" ?disabled=${isBusy || !version || Boolean(fault)}>${isBusy ? 'Creating…' : 'Create'}</button>
          </footer>
        </form>`
    },
  })
  if (isDone) toast(`Version ${version} is now current`)
  return isDone === true
}
