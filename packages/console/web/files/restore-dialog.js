import { encodePath, request } from '../api/client.js'
import { explain } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { formatCounts } from '../ui/format.js'
import { toast } from '../ui/states.js'
import { undoButton } from './change-dialogs.js'
import { announceFilesChanged } from './content.js'

/** @typedef {{ result: Api.TreeResult, headers: Record<string, string> }} Answer `headers`: only if the folder is still the same */

/**
 * Makes a folder what it was in a version, or at a time that is asked for, after saying what that changes.
 * @param {string} folder all files: empty
 * @param {string} [version]
 */
export async function openRestoreDialog(folder, version) {
  const form = { time: '' }
  /** @type {Answer | undefined} what would change, then what has */
  let answer
  const send = async () => {
    const seen = answer
    answer = undefined
    answer = await restore(folder, version ?? new Date(form.time).toISOString(), seen)
    return seen !== undefined
  }
  const ask = (/** @type {() => void} */ update) => {
    const onChange = () => {
      answer = undefined
      update()
    }
    const hint = 'Your local time. All files in this folder and below become what they were then.'
    return formField(form, 'time', 'As it was on', { type: 'datetime-local', isRequired: true, hint, onChange })
  }
  const isDone = await confirmDialog({
    title: version ? `Roll back to ${version}` : `Restore ${folder || 'all files'}`,
    className: 'small',
    get confirm() {
      return answer ? 'Restore' : 'Show what changes'
    },
    isReady: () => !answer || isChange(answer.result),
    prepare: version ? send : undefined,
    body: (/** @type {() => void} */ update) => [
      version ? nothing : ask(update),
      answer ? summary(answer.result) : nothing,
    ],
    action: send,
  })
  if (!isDone) return
  announceFilesChanged()
  const id = answer?.result.change?.id
  toast(html`The files are as they were ${id ? undoButton(id) : nothing}`)
}

/** @type {Record<string, string>} */
const reasons = {
  directory_not_found: 'There were no files then.',
  precondition_failed: 'Somebody else changed these files meanwhile. Nothing was restored: look again at what changes.',
}

/** Says what would change, or does what an answer said. @param {string} folder @param {string} at @param {Answer} [seen] @returns {Promise<Answer>} */
async function restore(folder, at, seen) {
  const query = { dry_run: seen ? undefined : 'true' }
  const options = { method: 'PUT', query, json: { from: folder, at }, headers: seen?.headers }
  const { body, header } = await request('files', `/api/trees/${encodePath(folder)}`, options).catch((error) => {
    const reason = reasons[explain(error).code]
    throw reason ? new Error(reason) : error
  })
  const result = /** @type {Api.TreeResult} */ (body)
  const isNew = result.replaced + result.removed + result.unchanged === 0
  return { result, headers: isNew ? { 'if-none-match': '*' } : { 'if-match': header('etag') ?? '' } }
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
