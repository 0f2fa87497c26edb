import { send } from '../api/client.js'
import { explain } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { formatCounts } from '../ui/format.js'
import { toast } from '../ui/states.js'
import { undoButton } from './change-dialogs.js'
import { announceFilesChanged } from './content.js'

/**
 * Makes a folder what it was in a version, or at a time that is asked for, after saying what that changes.
 * @param {string} folder all files: empty
 * @param {string} [version]
 */
export async function openRestoreDialog(folder, version) {
  const form = { time: '' }
  /** @type {Api.TreeResult | undefined} what would change, then what has */
  let result
  const restore = async (/** @type {'true' | undefined} */ isDryRun) => {
    const json = { from: folder, at: version ?? new Date(form.time).toISOString() }
    const options = { params: { path: folder }, query: { dry_run: isDryRun }, json }
    result = await send('files', 'put', '/api/trees/{path}', options).catch((error) => {
      throw explain(error).code === 'directory_not_found' ? new Error('There were no files then.') : error
    })
  }
  const ask = (/** @type {() => void} */ update) => {
    const onChange = () => {
      result = undefined
      update()
    }
    const hint = 'Your local time. All files in this folder and below become what they were then.'
    return formField(form, 'time', 'As it was on', { type: 'datetime-local', isRequired: true, hint, onChange })
  }
  const isDone = await confirmDialog({
    title: version ? `Roll back to ${version}` : `Restore ${folder || 'all files'}`,
    className: 'small',
    get confirm() {
      return result ? 'Restore' : 'Show what changes'
    },
    isReady: () => !result || isChange(result),
    prepare: version ? () => restore('true') : undefined,
    body: (/** @type {() => void} */ update) => [version ? nothing : ask(update), result ? summary(result) : nothing],
    action: async () => {
      const isSeen = result !== undefined
      await restore(isSeen ? undefined : 'true')
      return isSeen
    },
  })
  if (!isDone) return
  announceFilesChanged()
  const id = result?.change?.id
  toast(html`The files are as they were ${id ? undoButton(id) : nothing}`)
}

/** @param {Api.TreeResult} result */
const isChange = ({ added, replaced, removed }) => added + replaced + removed > 0

/** @param {Api.TreeResult} result */
function summary(result) {
  if (!isChange(result)) return html`<p role="status">The files are already like this.</p>`
  const { added, replaced, removed, unchanged } = result
  const counts = formatCounts({ 'brought back': added, 'made older': replaced, deleted: removed })
  return html`
    <p role="status"><strong>${counts}</strong> <span class="muted">· ${unchanged} stay as they are</span></p>
    <p class="muted">It is a change of its own, and can be taken back.</p>`
}
