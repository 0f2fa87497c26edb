import { get } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { mayEdit } from '../core/session.js'
import { Resource, RouteView } from '../core/view.js'
import { icon } from '../ui/icons.js'
import { pager } from '../ui/pager.js'
import { empty, show } from '../ui/states.js'
import { age } from '../ui/table.js'
import { attempt } from '../ui/toast.js'
import { versionDialog } from './version-dialog.js'
import { openVersionDiff } from './version-diff.js'

/** @import { VersionList, VersionRecord } from '../api/schema.d.ts' */

/** The versions, newest first: the first one is current. */
class VersionListView extends RouteView {
  /** @type {Resource<VersionList>} */
  #list = new Resource(this, (signal) => {
    const query = { ...this.values('page'), page_size: 20 }
    return get('files', '/api/versions', { query, signal })
  })
  /** @type {Map<string, string>} changelogs that were loaded whole */
  #whole = new Map()

  reload() {
    return this.#list.reload()
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header">
          <h1>Versions</h1>
          ${
            mayEdit('files')
              ? html`<button class="button primary" data-key="n" @click=${this.#create}>${icon('plus')} New version</button>`
              : nothing
          }
        </header>
        ${show(this.#list, (list) => this.#versions(list), 5)}
      </div>`
  }

  /** @param {VersionList} list */
  #versions({ versions, pagination }) {
    if (versions.length === 0) {
      return empty({
        icon: 'tag',
        title: 'No versions yet',
        text: 'A version names a state of your files with a changelog. Programs read the newest one at /api/versions/current.',
      })
    }
    return html`
      <ol class="versions">
        ${versions.map((each, at) => {
          const others = versions.flatMap(({ version }) =>
            version === each.version ? [] : [version],
          )
          return this.#version(each, pagination.page === 1 && at === 0, others)
        })}
      </ol>
      ${pager(pagination, (page) => this.open({ page: String(page) }))}`
  }

  /** @param {VersionRecord} record @param {boolean} isCurrent @param {string[]} others */
  #version(
    { version, changelog, changelog_truncated: isCut, created_by: by, created_at: at },
    isCurrent,
    others,
  ) {
    const whole = this.#whole.get(version)
    return html`
      <li class="panel version">
        <div class="version-head">
          <h2>${version}</h2>
          ${isCurrent ? html`<span class="chip good">${icon('check')} current</span>` : nothing}
          <span class="muted">${by}, ${age(at)}</span>
          <span class="spacer"></span>
          <button class="button" aria-label="What changed since ${version}" @click=${() => openVersionDiff(version, others)}>What changed since</button>
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

  #create = async () => {
    if (await versionDialog()) await this.reload()
  }
}

customElements.define('version-list', VersionListView)
