import { send } from '../api/client.js'
import { ApiError } from '../api/problem.js'
import { html } from '../core/html.js'
import { openDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { errorNotice } from '../ui/states.js'
import { toast } from '../ui/toast.js'
import { diffList, summarizeDiff } from '../zone/review/diff-list.js'
import { pairChanges } from '../zone/zone-diff.js'

/** @import { LedgerChange } from '../api/schema.d.ts' */

/**
 * Shows what somebody proposes, to be approved or rejected by another person.
 * @param {LedgerChange} change
 * @returns {Promise<boolean>} whether it was decided
 */
export async function openProposal({ id, by, domain, changes }) {
  let shown = changes
  const form = { reason: '' }
  let isBusy = false
  /** @type {unknown} */
  let error
  const isDone = await openDialog({
    title: `${by} proposes a change of ${domain}`,
    isLocked: () => isBusy,
    draw: ({ close, update }) => {
      /** @param {'approve' | 'reject'} decision */
      const decide = async (decision) => {
        isBusy = true
        error = undefined
        update()
        const json = decision === 'reject' && form.reason ? form : undefined
        try {
          await send('domains', 'post', `/api/changes/{id}/${decision}`, { params: { id }, json })
          toast(decision === 'approve' ? 'Approved: it is queued' : 'Rejected')
          close(true)
        } catch (failure) {
          error = failure
          if (failure instanceof ApiError && failure.body.changes) shown = failure.body.changes
        }
        isBusy = false
        update()
      }
      const diff = pairChanges(shown ?? { added: [], removed: [] })
      return html`
        <div class="dialog-body">
          <p class="summary"><strong>${summarizeDiff(diff)}</strong></p>
          ${diffList(diff)} ${formField(form, 'reason', 'Reason, if you reject it')} ${errorNotice(error)}
        </div>
        <footer class="dialog-footer">
          <button class="button" @click=${() => close()}>Cancel</button>
          <button class="button danger" ?disabled=${isBusy} @click=${() => decide('reject')}>Reject</button>
          <button class="button primary" ?disabled=${isBusy} @click=${() => decide('approve')}>${isBusy ? 'Working…' : 'Approve'}</button>
        </footer>`
    },
  })
  return isDone === true
}
