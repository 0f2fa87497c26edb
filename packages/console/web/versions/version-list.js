import { get, mayEdit, send } from '../api/client.js'
import { html, nothing, Resource, RouteView, View } from '../core/view.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { field, formField } from '../ui/form.js'
import { formatBytes } from '../ui/format.js'
import { attempt, empty, icon, page, show, toast } from '../ui/states.js'
import { age, pager } from '../ui/table.js'

/** The versions, newest first: the first one is current. */
class VersionListView extends RouteView {
  /** @type {Resource<Api.VersionList>} */
  #list = new Resource(this, (signal) => {
    const query = { ...this.values('page'), page_size: 20 }
    return get('files', '/api/versions', { query, signal })
  })
  /** @type {Map<string, string>} changelogs that were loaded whole */
  #whole = new Map()

  template() {
    const create = html`<button class="button primary" data-key="n" @click=${() => this.reloadAfter(versionDialog())}>${icon('plus')} New version</button>`
    const content = show(this.#list, (list) => this.#versions(list), 5)
    return page('Versions', mayEdit('files') ? create : '', content)
  }

  /** @param {Api.VersionList} list */
  #versions({ versions, pagination }) {
    const hint =
      'A version names a state of your files with a changelog. Programs read the newest one at /api/versions/current.'
    if (versions.length === 0) return empty('tag', 'No versions yet', hint)
    const names = versions.map(({ version }) => version)
    return html`
      <ol class="versions">
        ${versions.map((each, at) => this.#version(each, pagination.page === 1 && at === 0, names))}
      </ol>
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  /** @param {Api.VersionRecord} record @param {boolean} isCurrent @param {string[]} names of all */
  #version(
    { version, changelog, changelog_truncated: isCut, created_by: by, created_at: at },
    isCurrent,
    names,
  ) {
    const whole = this.#whole.get(version)
    return html`
      <li class="panel version">
        <div class="version-head">
          <h2>${version}</h2>
          ${isCurrent ? html`<span class="chip good">${icon('check')} current</span>` : nothing}
          <span class="muted">${by}, ${age(at)}</span>
          <span class="spacer"></span>
          <button class="button" aria-label="What changed since ${version}" @click=${() => openVersionDiff(version, names)}>What changed since</button>
        </div>
        ${changelog ? html`<p class="changelog">${whole ?? changelog}${isCut && !whole ? '…' : nothing}</p>` : nothing}
        ${isCut && !whole ? html`<div><button class="link-button" @click=${() => this.#loadWhole(version)}>Show all</button></div>` : nothing}
      </li>`
  }

  /** @param {string} version */
  #loadWhole = (version) =>
    attempt(async () => {
      const { signal } = this
      const params = { version }
      const { changelog } = await get('files', '/api/versions/{version}', { params, signal })
      this.#whole.set(version, changelog)
      this.update()
    })
}

customElements.define('version-list', VersionListView)

const versionPattern = /^[A-Za-z0-9._+-]{1,64}$/

/** Creates a version. @returns {Promise<boolean>} whether one was created */
function versionDialog() {
  const json = { version: '', changelog: '' }
  return confirmDialog({
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
      ${formField(json, 'changelog', 'Changelog', { rows: 8, placeholder: 'What is new' })}`,
    action: async () => {
      await send('files', 'post', '/api/versions', { json })
      toast(`Version ${json.version} is now current`)
    },
  })
}

/**
 * What differs between a version and another, or the files as they are now.
 * @param {string} version
 * @param {string[]} names of all versions
 */
const openVersionDiff = (version, names) =>
  openDialog({
    title: `What changed since ${version}`,
    draw: () =>
      html`<version-diff .version=${version} .others=${names.filter((name) => name !== version)}></version-diff>`,
  })

class VersionDiffView extends View {
  version = ''
  /** @type {string[]} */
  others = []
  #to = 'current'
  #page = 1
  /** @type {Resource<Api.VersionDiff>} */
  #diff = new Resource(this, (signal) => {
    const query = { to: this.#to, page: this.#page, page_size: 100 }
    const params = { version: this.version }
    return get('files', '/api/versions/{version}/diff', { params, query, signal })
  })

  opened() {
    void this.reload()
  }

  template() {
    return html`
      <div class="dialog-body">
        ${field({
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

  /** @param {Api.VersionDiff} diff */
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
