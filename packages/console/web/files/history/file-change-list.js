import { listFileChanges, revertFileChange } from '../../api/file-history.js'
import { ApiError } from '../../api/problem.js'
import { html, nothing } from '../../core/html.js'
import { currentRoute, hrefTo, navigate, routeChanges } from '../../core/router.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { confirmDialog } from '../../ui/dialog.js'
import { formatAge, formatTime } from '../../ui/format.js'
import { pager } from '../../ui/pager.js'
import { empty, show } from '../../ui/states.js'
import { moveBetweenRows } from '../../ui/table.js'
import { toast } from '../../ui/toast.js'
import { announceFilesChanged, filesChanged } from '../file-changes.js'
import { hrefToPath } from '../paths.js'

/** @import { FileChange, FileChanges } from '../../api/schema.d.ts' */

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
class FileChangeList extends View {
  #changes = new Resource(this, (signal) => listFileChanges(this.#query(), signal))

  opened() {
    const { signal } = this
    routeChanges.addEventListener('change', () => this.#follow(), { signal })
    filesChanged.addEventListener('change', () => void this.#changes.reload(), { signal })
    addEventListener('focus', () => void this.#changes.reload(), { signal })
    this.#follow()
  }

  #follow() {
    if (currentRoute().segments[0] === 'file-changes') void this.#changes.reload()
  }

  #query() {
    const { query } = currentRoute()
    return {
      prefix: query.get('prefix') ?? undefined,
      by: query.get('by') ?? undefined,
      page: query.get('page') ?? '1',
      page_size: 50,
    }
  }

  /** @param {Record<string, string | undefined>} changes */
  #open(changes) {
    const query = { ...Object.fromEntries(currentRoute().query), page: undefined, ...changes }
    navigate(hrefTo(['file-changes'], query))
  }

  template() {
    const { prefix, by } = this.#query()
    return html`
      <div class="view">
        <header class="view-header">
          <h1>File changes</h1>
          <div class="toolbar">
            ${Object.entries({ prefix, by }).map(([name, value]) =>
              value
                ? html`<button class="button" aria-label="Remove the filter ${value}" @click=${() => this.#open({ [name]: undefined })}>${value} ×</button>`
                : nothing,
            )}
          </div>
        </header>
        ${show(this.#changes, (list) => this.#table(list), 8)}
      </div>`
  }

  /** @param {FileChanges} list */
  #table({ changes, pagination }) {
    if (changes.length === 0)
      return empty({
        icon: 'clock',
        title: 'No changes here',
        text: 'Everything that is stored, moved or deleted appears here, and can be taken back.',
      })
    return html`
      <div class="table-frame" @keydown=${moveBetweenRows}>
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Files</th>
              <th scope="col">By</th>
              <th scope="col">When</th>
              <th scope="col"><span class="sr-only">Actions</span></th>
            </tr>
          </thead>
          <tbody>${changes.map((change) => this.#row(change))}</tbody>
        </table>
      </div>
      ${pager(pagination, (page) => this.#open({ page: String(page) }))}`
  }

  /** @param {FileChange} change */
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
        <td class="value" title=${[first, ...others].join('\n')}>
          ${prefix ? html`<code>${prefix}</code>` : first ? html`<a data-row href=${hrefToPath(first)}>${first}</a>` : nothing}
          ${!prefix && rest > 0 ? html`<span class="muted">and ${rest} more</span>` : nothing}
        </td>
        <td>${by} ${token ? html`<span class="muted">${token}</span>` : nothing}</td>
        <td class="muted"><time datetime=${at} title=${formatTime(at)}>${formatAge(at)}</time></td>
        <td class="actions">
          ${mayEdit('files') ? html`<button class="button" aria-label="Revert ${words[action] ?? action} ${first ?? ''}" @click=${() => this.#revert(change)}>Revert</button>` : nothing}
        </td>
      </tr>`
  }

  /** @param {FileChange} change */
  async #revert(change) {
    let overwrite = false
    const isDone = await confirmDialog({
      title: 'Take this change back?',
      body: html`<p>${countsOf(change)}: exactly these files become what they were before. The revert is a change of its own, and can be reverted.</p>`,
      confirm: 'Revert',
      action: async () => {
        try {
          await revertFileChange(change.id, { overwrite })
        } catch (error) {
          // The second click is the answer to what the first one said.
          if (error instanceof ApiError && error.code === 'revert_conflict') {
            overwrite = true
            throw new Error(
              `${error.message} Press Revert again to overwrite what was changed since.`,
            )
          }
          throw error
        }
      },
    })
    if (!isDone) return
    toast('The change is taken back')
    announceFilesChanged()
  }
}

/** "3 new, 1 replaced". @param {FileChange} change */
const countsOf = ({ added, replaced, removed }) =>
  Object.entries({ new: added, replaced, removed })
    .flatMap(([word, count]) => (count > 0 ? `${count} ${word}` : []))
    .join(', ')

customElements.define('file-change-list', FileChangeList)
