import { get } from '../api/client.js'
import { html } from '../core/html.js'
import { Resource, View } from '../core/view.js'
import { openDialog } from '../ui/dialog.js'
import { selectField } from '../ui/form.js'
import { formatBytes } from '../ui/format.js'
import { pager } from '../ui/pager.js'
import { show } from '../ui/states.js'

/** @import { VersionDiff } from '../api/schema.d.ts' */

/**
 * What differs between a version and another, or the files as they are now.
 * @param {string} version
 * @param {string[]} others to compare with
 */
export const openVersionDiff = (version, others) =>
  openDialog({
    title: `What changed since ${version}`,
    draw: () => html`<version-diff .version=${version} .others=${others}></version-diff>`,
  })

class VersionDiffView extends View {
  version = ''
  /** @type {string[]} */
  others = []
  #to = 'current'
  #page = 1
  /** @type {Resource<VersionDiff>} */
  #diff = new Resource(this, (signal) => {
    const query = { to: this.#to, page: this.#page, page_size: 100 }
    const params = { version: this.version }
    return get('files', '/api/versions/{version}/diff', { params, query, signal })
  })

  opened() {
    void this.#diff.reload()
  }

  template() {
    return html`
      <div class="dialog-body">
        ${selectField({
          id: 'compare-with',
          label: 'Compare with',
          value: this.#to,
          options: [['current', 'The files as they are now'], ...this.others],
          onInput: (to) => {
            this.#to = to
            this.#open(1)
          },
        })}
        ${show(this.#diff, (diff) => this.#list(diff), 4)}
      </div>`
  }

  /** @param {VersionDiff} diff */
  #list({ added, removed, changed, pagination }) {
    if (pagination.total_items === 0) return html`<p class="muted">The files are the same.</p>`
    return html`
      <ul class="diff">
        ${removed.map(({ path, before }) => line('removed', '−', path, sizeOf(before)))}
        ${changed.map(({ path, before, after }) => line('changed', '~', path, `${sizeOf(before)} → ${sizeOf(after)}`))}
        ${added.map(({ path, after }) => line('added', '+', path, sizeOf(after)))}
      </ul>
      ${pager(pagination, (page) => this.#open(page))}`
  }

  /** @param {number} page */
  #open(page) {
    this.#page = page
    void this.#diff.reload()
  }
}

/** @param {{ size: number } | null} state */
const sizeOf = (state) => formatBytes(state?.size ?? 0)

/** @param {'added' | 'removed' | 'changed'} kind @param {string} sign @param {string} path @param {string} size */
const line = (kind, sign, path, size) => html`
  <li class=${kind}>
    <span class="sign" aria-hidden="true">${sign}</span><span class="sr-only">${kind}:</span>
    <span class="diff-value">${path}</span><span class="muted">${size}</span>
  </li>`

customElements.define('version-diff', VersionDiffView)
