import { get, mayEdit, send } from '../api/client.js'
import { html, nothing, Resource } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { select } from '../ui/form.js'
import { formatCounts, formatNumber } from '../ui/format.js'
import { empty, page, show } from '../ui/states.js'
import { age, filterChips, list, pager } from '../ui/table.js'
import { announceFilesChanged, FilesView, hrefToPath, prefixChoice, prefixOf } from './content.js'

/** @type {Record<string, string>} */
const words = {
  upload: 'Stored',
  delete: 'Deleted',
  move: 'Moved',
  deploy: 'Deployed',
  restore: 'Restored',
  revert: 'Reverted',
}

/** Who changed which files, newest first. Each change can be taken back by itself. */
class FileChangeList extends FilesView {
  #changes = new Resource(this, (signal) => {
    const query = { ...this.values('by', 'action', 'page'), prefix: prefixOf(this), page_size: 50 }
    return get('files', '/api/changes', { query, signal })
  })

  template() {
    const content = show(this.#changes, (list) => this.#table(list), 8)
    const kinds = select(
      'Kind of change',
      [['', 'All kinds'], ...Object.entries(words)],
      this.query.get('action') ?? '',
      (action) => this.open({ action }),
    )
    return page('File changes', [filterChips(this, ['prefix', 'by']), prefixChoice(this), kinds], content)
  }

  /** @param {Api.FileChanges} list */
  #table({ changes, pagination }) {
    const hint = 'Everything that is stored, moved or deleted appears here, and can be taken back.'
    if (changes.length === 0) return empty('clock', 'No changes here', hint)
    return html`
      ${list(changes, columnsOf(this), (change) => [
        `${wordOf(change)} ${change.paths[0] ?? ''}`,
        mayEdit('files') ? ['Revert', () => revert(change)] : undefined,
      ])}
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }
}

/** @param {Api.FileChange} change */
const wordOf = ({ action }) => words[action] ?? action

/** @param {FileChangeList} view @returns {Record<string, (change: Api.FileChange) => unknown>} */
const columnsOf = (view) => ({
  What: (change) => html`
    ${wordOf(change)} ${change.version ? html`<span class="chip accent">${change.version}</span>` : nothing}
    <span class="muted">${countsOf(change)}</span>`,
  Files: ({ paths, prefix, added, replaced, removed }) => {
    const [first] = paths
    const rest = added + replaced + removed - 1
    return html`
      <span class="paths" title=${paths.join('\n')}>
        ${prefix ? html`<code>${prefix}</code>` : first ? html`<a data-row href=${hrefToPath(first)}>${first}</a>` : nothing}
        ${!prefix && rest > 0 ? html`and ${formatNumber(rest)} more` : nothing}
      </span>`
  },
  By: ({ by, token }) => html`<a href=${view.hrefWith({ by })} title="Only changes of ${by}">${by}</a> ${token}`,
  When: ({ at }) => age(at),
})

/** @param {Api.FileChange} change */
async function revert(change) {
  const json = { overwrite: false }
  const isDone = await confirmDialog({
    title: 'Take this change back?',
    body: html`<p>${countsOf(change)}: exactly these files become what they were before. The revert is a change of its own, and can be reverted.</p>`,
    confirm: 'Revert',
    action: () => send('files', 'post', '/api/changes/{id}/revert', { params: { id: change.id }, json }),
    ways: () => ({
      revert_conflict: ['Overwrite what was changed since', () => (json.overwrite = true)],
    }),
    said: 'The change is taken back',
  })
  if (isDone) announceFilesChanged()
}

/** @param {Api.FileChange} change */
const countsOf = ({ added, replaced, removed }) => formatCounts({ new: added, replaced, removed })

customElements.define('file-change-list', FileChangeList)
