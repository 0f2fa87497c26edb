import { getVersion, listVersions } from '../api/static-service.js'
import { html, nothing } from '../core/html.js'
import { currentRoute, hrefTo, navigate, routeChanges } from '../core/router.js'
import { mayEdit } from '../core/session.js'
import { Resource, View } from '../core/view.js'
import { formatAge, formatTime } from '../ui/format.js'
import { icon } from '../ui/icons.js'
import { pager } from '../ui/pager.js'
import { empty, show } from '../ui/states.js'
import { toast } from '../ui/toast.js'
import { versionDialog } from './version-dialog.js'

/** @import { VersionList, VersionRecord } from '../api/schema.d.ts' */

/** The versions, newest first: the first one is current. */
class VersionListView extends View {
  #list = new Resource(this, (signal) => listVersions(this.#page(), signal))
  /** @type {Map<string, string>} changelogs that were loaded whole */
  #whole = new Map()
  #shownPage = 0

  opened() {
    routeChanges.addEventListener('change', () => this.#follow(), { signal: this.signal })
    this.#shownPage = 0
    this.#follow()
  }

  #follow() {
    if (currentRoute().segments[0] !== 'versions' || this.#page() === this.#shownPage) return
    this.#shownPage = this.#page()
    void this.#list.reload()
  }

  #page() {
    return Number(currentRoute().query.get('page') ?? '1')
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
        ${versions.map((version, at) => this.#version(version, pagination.page === 1 && at === 0))}
      </ol>
      ${pager(pagination, (page) => navigate(hrefTo(['versions'], { page: String(page) })))}`
  }

  /** @param {VersionRecord} record @param {boolean} isCurrent */
  #version(
    { version, changelog, changelog_truncated: isCut, created_by: by, created_at: at },
    isCurrent,
  ) {
    const whole = this.#whole.get(version)
    return html`
      <li class="panel version">
        <div class="version-head">
          <h2>${version}</h2>
          ${isCurrent ? html`<span class="chip good">${icon('check')} current</span>` : nothing}
          <span class="muted">${by}, <time datetime=${at} title=${formatTime(at)}>${formatAge(at)}</time></span>
        </div>
        ${changelog ? html`<p class="changelog">${whole ?? changelog}${isCut && !whole ? '…' : nothing}</p>` : nothing}
        ${isCut && !whole ? html`<div><button class="link-button" @click=${() => this.#loadWhole(version)}>Show all</button></div>` : nothing}
      </li>`
  }

  /** @param {string} version */
  async #loadWhole(version) {
    try {
      const { changelog } = await getVersion(version, this.signal)
      this.#whole.set(version, changelog)
      this.update()
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'bad')
    }
  }

  #create = async () => {
    if (!(await versionDialog())) return
    await this.#list.reload()
  }
}

customElements.define('version-list', VersionListView)
