import { get, mayEdit, send } from '../api/client.js'
import { explain } from '../api/transport.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { empty, page, show, toast } from '../ui/states.js'
import { age, filterChips, pager, table } from '../ui/table.js'
import { repeat } from '../vendor/directives/repeat.js'
import { announceFilesChanged, filesChanged } from './content.js'
import { hrefToPath } from './paths.js'

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
class FileChangeList extends RouteView {
  #changes = new Resource(this, (signal) => {
    const query = { ...this.values('prefix', 'by', 'page'), page_size: 50 }
    return get('files', '/api/changes', { query, signal })
  })

  opened() {
    filesChanged.addEventListener('change', () => this.reload(), { signal: this.signal })
    super.opened()
  }

  template() {
    const chips = filterChips(this, ['prefix', 'by'])
    const content = show(this.#changes, (list) => this.#table(list), 8)
    return page('File changes', chips, content)
  }

  /** @param {Api.FileChanges} list */
  #table({ changes, pagination }) {
    if (changes.length === 0)
      return empty(
        'clock',
        'No changes here',
        'Everything that is stored, moved or deleted appears here, and can be taken back.',
      )
    return html`
      ${table(
        ['What', 'Files', 'By', 'When', ''],
        repeat(
          changes,
          ({ id }) => id,
          (change) => this.#row(change),
        ),
      )}
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  /** @param {Api.FileChange} change */
  #row(change) {
    const { action, by, token, at, added, replaced, removed, paths, prefix } = change
    const [first, ...others] = paths
    const rest = added + replaced + removed - 1
    return html`
      <tr>
        <th scope="row">
          ${words[action] ?? action} ${change.version ? html`<span class="chip accent">${change.version}</span>` : nothing}
          <span class="muted">${countsOf(change)}</span>
        </th>
        <td class="paths" title=${[first, ...others].join('\n')}>
          ${prefix ? html`<code>${prefix}</code>` : first ? html`<a data-row href=${hrefToPath(first)}>${first}</a>` : nothing}
          ${!prefix && rest > 0 ? html`<span class="muted">and ${rest} more</span>` : nothing}
        </td>
        <td>${by} ${token ? html`<span class="muted">${token}</span>` : nothing}</td>
        <td class="muted">${age(at)}</td>
        <td class="actions">
          ${mayEdit('files') ? html`<button class="button" aria-label="Revert ${words[action] ?? action} ${first ?? ''}" @click=${() => this.#revert(change)}>Revert</button>` : nothing}
        </td>
      </tr>`
  }

  /** @param {Api.FileChange} change */
  async #revert(change) {
    let overwrite = false
    const isDone = await confirmDialog({
      title: 'Take this change back?',
      body: html`<p>${countsOf(change)}: exactly these files become what they were before. The revert is a change of its own, and can be reverted.</p>`,
      confirm: 'Revert',
      action: async () => {
        try {
          const options = { params: { id: change.id }, json: { overwrite } }
          await send('files', 'post', '/api/changes/{id}/revert', options)
        } catch (error) {
          // The second click is the answer to what the first one said.
          const { code, detail } = explain(error)
          if (code !== 'revert_conflict') throw error
          overwrite = true
          throw new Error(`${detail} Press Revert again to overwrite what was changed since.`)
        }
      },
    })
    if (!isDone) return
    toast('The change is taken back')
    announceFilesChanged()
  }
}

/** "3 new, 1 replaced". @param {Api.FileChange} change */
const countsOf = ({ added, replaced, removed }) =>
  Object.entries({ new: added, replaced, removed })
    .flatMap(([word, count]) => (count > 0 ? `${count} ${word}` : []))
    .join(', ')

customElements.define('file-change-list', FileChangeList)
