import { send } from '../api/client.js'
import { html } from '../core/html.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField, textArea } from '../ui/form.js'
import { toast } from '../ui/toast.js'

const versionPattern = /^[A-Za-z0-9._+-]{1,64}$/

/** Creates a version. @returns {Promise<boolean>} whether one was created */
export async function versionDialog() {
  const json = { version: '', changelog: '' }
  const isDone = await confirmDialog({
    title: 'New version',
    confirm: 'Create',
    busy: 'Creating…',
    isReady: () => versionPattern.test(json.version),
    body: (/** @type {() => void} */ update) => html`
      ${formField(json, 'version', 'Version', {
        fault:
          json.version === '' || versionPattern.test(json.version)
            ? undefined
            : 'Letters, digits and . _ + - only, up to 64',
        placeholder: '1.4.0',
        isRequired: true,
        onChange: update,
      })}
      ${textArea({
        id: 'changelog',
        label: 'Changelog',
        value: json.changelog,
        rows: 8,
        placeholder: 'What is new',
        onInput: (value) => {
          json.changelog = value
        },
      })}`,
    action: () => send('files', 'post', '/api/versions', { json }),
  })
  if (isDone) toast(`Version ${json.version} is now current`)
  return isDone
}
