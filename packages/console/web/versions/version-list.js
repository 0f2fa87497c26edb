import { get, mayEdit, send } from '../api/client.js'
import { hrefTo } from '../core/router.js'
import { html, nothing, Resource, RouteView } from '../core/view.js'
import { ownFolders } from '../files/content.js'
import { openRestoreDialog } from '../files/restore-dialog.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField, select } from '../ui/form.js'
import { formatBytes } from '../ui/format.js'
import { attempt, empty, icon, page, show, toast } from '../ui/states.js'
import { age, pager } from '../ui/table.js'

/** The versions, newest first: the first one is current; or what differs between one and another, or the files as they are now. */
class VersionListView extends RouteView {
  #list = new Resource(this, (signal) => {
    const query = { ...this.values('page'), page_size: 20 }
    return get('files', '/api/versions', { query, signal })
  })
  #diff = new Resource(this, async (signal) => {
    const { since, ...query } = this.values('since', 'to', 'page')
    if (!since) return undefined
    const options = { params: { version: since }, query: { to: 'current', ...query }, signal }
    return get('files', '/api/versions/{version}/diff', options)
  })
  /** @type {Map<string, string>} changelogs that were loaded whole */
  #whole = new Map()

  entered() {
    for (const each of this.resources) each.value = undefined
  }

  template() {
    const since = this.query.get('since')
    if (since)
      return page(
        `What changed since ${since}`,
        this.#compareWith(since),
        show(this.#diff, (diff) => diff && this.#changes(diff), 4),
      )
    const create = html`<button class="button primary" data-key="n" @click=${() => this.reloadAfter(versionDialog())}>${icon('plus')} New version</button>`
    const content = show(this.#list, (list) => this.#versions(list), 5)
    return page('Versions', mayEdit('files') ? create : '', content)
  }

  /** @param {string} since */
  #compareWith(since) {
    const names = this.#list.value?.versions.map(({ version }) => version) ?? []
    const others = names.filter((name) => name !== since)
    const options = [['current', 'The files as they are now'], ...others]
    return select('Compare with', options, this.query.get('to') ?? 'current', (to) => this.open({ to }))
  }

  /** @param {Api.VersionDiff} diff */
  #changes({ added, removed, changed, pagination }) {
    if (pagination.total_items === 0) return html`<p class="muted">The files are the same.</p>`
    return html`
      <ul class="diff">
        ${removed.map(({ path, before }) => line('removed', '−', path, sizeOf(before)))}
        ${changed.map(({ path, before, after }) => line('changed', '~', path, `${sizeOf(before)} → ${sizeOf(after)}`))}
        ${added.map(({ path, after }) => line('added', '+', path, sizeOf(after)))}
      </ul>
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  /** @param {Api.VersionList} list */
  #versions({ versions, pagination }) {
    const hint =
      'A version names a state of your files with a changelog. Programs read the newest one at /api/versions/current.'
    if (versions.length === 0) return empty('tag', 'No versions yet', hint)
    return html`
      <ol class="versions">
        ${versions.map((each, at) => this.#version(each, pagination.page === 1 && at === 0))}
      </ol>
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  /** @param {Api.VersionRecord} record @param {boolean} isCurrent */
  #version(record, isCurrent) {
    const { version, changelog, changelog_truncated: isCut } = record
    const whole = this.#whole.get(version)
    return html`
      <li class="panel version">
        <div class="version-head">
          <h2>${version}</h2>
          ${isCurrent ? html`<span class="chip good">${icon('check')} current</span>` : nothing}
          <span class="muted">${record.created_by}, ${age(record.created_at)}</span>
          <span class="spacer"></span>
          ${mayEdit('files') && !ownFolders() && record.files_kept ? html`<button class="button" aria-label="Roll back to ${version}" @click=${() => openRestoreDialog('', version)}>Roll back</button>` : nothing}
          <a class="button" aria-label="What changed since ${version}" href=${hrefTo(['versions'], { since: version })}>What changed since</a>
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

/** Creates a version. @returns {Promise<boolean>} whether one was created */
function versionDialog() {
  const json = { version: '', changelog: '' }
  return confirmDialog({
    title: 'New version',
    confirm: 'Create',
    body: () => html`
      ${formField(json, 'version', 'Version', { placeholder: '1.4.0', isRequired: true, hint: 'Letters, digits and . _ + -' })}
      ${formField(json, 'changelog', 'Changelog', { rows: 8, placeholder: 'What is new' })}`,
    action: async () => {
      await send('files', 'post', '/api/versions', { json })
      toast(`Version ${json.version} is now current`)
    },
  })
}

/** @param {{ size: number } | null} state */
const sizeOf = (state) => formatBytes(state?.size ?? 0)

/** @param {'added' | 'removed' | 'changed'} kind @param {string} sign @param {string} path @param {string} size */
const line = (kind, sign, path, size) => html`
  <li class=${kind}>
    <span class="sign" aria-hidden="true">${sign}</span><span class="sr-only">${kind}:</span>
    <span class="diff-value">${path}</span><span class="muted">${size}</span>
  </li>`
