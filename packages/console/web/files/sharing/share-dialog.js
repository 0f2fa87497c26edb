import { get, isAdmin, send } from '../../api/client.js'
import { urlOf } from '../../api/transport.js'
import { Attempt, html, nothing, Resource, View } from '../../core/view.js'
import { secretOnce } from '../../ui/clipboard.js'
import { openDialog } from '../../ui/dialog.js'
import { checkbox, formField } from '../../ui/form.js'
import { formatTime } from '../../ui/format.js'
import { errorNotice, icon, show } from '../../ui/states.js'

const day = 86_400

/** Links to a file or a folder, and whether a folder is private. @param {string} path a folder ends in `/` */
export const openShareDialog = (path) =>
  openDialog({
    title: `Share ${path}`,
    draw: () => html`<share-dialog .path=${path}></share-dialog>`,
  })

class ShareDialog extends View {
  path = ''
  // One's own; admins see all.
  #links = new Resource(this, async (signal) => {
    const query = { path: this.path, page_size: 200 }
    return (await get('files', '/api/links', { query, signal })).links
  })
  #rules = new Resource(this, async (signal) =>
    this.#isLockable() ? (await get('files', '/api/access', { signal })).rules : [],
  )
  #form = { days: '7', downloads: '' }
  #url = ''
  #attempt = new Attempt(() => this.update())

  opened() {
    void this.reload()
  }

  #isLockable() {
    return this.path.endsWith('/') && isAdmin('files')
  }

  template() {
    return html`
      <div class="dialog-body">
        ${this.#isLockable() ? show(this.#rules, (rules) => this.#lock(rules), 1) : nothing}
        ${this.#url ? secretOnce(html`<strong>Copy it now.</strong> The link is shown this once. Whoever has it reads the files.`, this.#url, 'Link') : this.#newLink()} ${errorNotice(this.#attempt.error)}
        ${show(this.#links, (links) => this.#list(links), 1)}
      </div>`
  }

  /** @param {Api.AccessRule[]} rules */
  #lock(rules) {
    const rule = rules
      .filter(({ prefix }) => this.path.startsWith(prefix))
      .sort((one, other) => other.prefix.length - one.prefix.length)[0]
    const toggle = (/** @type {boolean} */ isPrivate) =>
      this.#do(async () => {
        const options = { params: { path: this.path }, json: { public: !isPrivate } }
        await send('files', 'put', '/api/access/{path}', options)
      })
    const hint = 'Its files are served only to people and programs that log in, and by links.'
    return checkbox('Private folder', rule?.public === false, toggle, hint)
  }

  #newLink() {
    return html`
      <form class="share-form" @submit=${this.#create}>
        <div class="field-pair">
          ${formField(this.#form, 'days', 'Link valid for', {
            options: [
              ['1', '1 day'],
              ['7', '7 days'],
              ['30', '30 days'],
              ['365', '1 year'],
            ],
          })}
          ${formField(this.#form, 'downloads', 'Downloads', { inputMode: 'numeric', hint: 'Empty: as many as they like' })}
        </div>
        <button class="button primary" ?disabled=${this.#attempt.isBusy}>${icon('link')} Make a link</button>
      </form>`
  }

  /** @param {Api.Link[]} links */
  #list(links) {
    if (links.length === 0) return html`<p class="muted">No links yet.</p>`
    return html`
      <h3>Links</h3>
      <ul class="plain-list">
        ${links.map(
          (link) => html`
            <li>
              <span>${link.name ?? link.by}, until ${formatTime(link.expires_at)}</span>
              ${link.downloads_left === null ? nothing : html`<span class="chip">${link.downloads_left} downloads left</span>`}
              <button class="link-button" @click=${() => this.#revoke(link)}>Revoke</button>
            </li>`,
        )}
      </ul>`
  }

  /** @param {Event} event */
  #create = (event) => {
    event.preventDefault()
    return this.#do(async () => {
      const downloads = this.#form.downloads ? { downloads: Number(this.#form.downloads) } : {}
      const json = { path: this.path, expires_in: Number(this.#form.days) * day, ...downloads }
      const { url } = await send('files', 'post', '/api/links', { json })
      this.#url = new URL(url, urlOf('files')).href
    })
  }

  /** @param {Api.Link} link */
  #revoke = ({ id }) =>
    this.#do(async () => {
      await send('files', 'delete', '/api/links/{id}', { params: { id } })
      this.#url = ''
    })

  /** @param {() => Promise<void>} task */
  #do = (task) =>
    this.#attempt.run(async () => {
      await task()
      await this.reload()
    })
}

customElements.define('share-dialog', ShareDialog)
