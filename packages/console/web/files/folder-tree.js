import { get } from '../api/client.js'
import { html, nothing, View } from '../core/view.js'
import { formatNumber } from '../ui/format.js'
import { errorNotice, icon } from '../ui/states.js'
import { filesChanged } from './content.js'
import { directoriesIn, hrefToPath, parentOf } from './paths.js'

/** @typedef {Api.DirectoryNode[] | 'loading' | undefined} Level */

/** The directories as a tree, each level loaded when it is opened. */
class FolderTree extends View {
  #current = ''
  /** @type {Map<string, Level>} the directories directly in each opened one */
  #levels = new Map()
  /** @type {Set<string>} */
  #open = new Set([''])
  /** @type {unknown} */
  #error

  /** @param {string} folder */
  set current(folder) {
    if (folder === this.#current && this.#levels.size > 0) return
    this.#current = folder
    for (let path = folder; path !== ''; path = parentOf(path)) this.#open.add(path)
    this.#loadOpen()
    this.update()
  }

  opened() {
    filesChanged.addEventListener('change', () => void this.#reload(), { signal: this.signal })
    this.#loadOpen()
  }

  // From the top down, so that directories that are gone are not asked for.
  async #reload() {
    const open = [...this.#open].sort((left, right) => left.length - right.length)
    for (const path of open) {
      if (path === '' || this.#isListed(path)) await this.#load(path)
      else this.#open.delete(path)
    }
  }

  /** @param {string} path */
  #isListed(path) {
    const level = this.#levels.get(parentOf(path))
    return (
      Array.isArray(level) &&
      level.some((each) => each.path.replace(/\/$/, '') === path.slice(0, -1))
    )
  }

  #loadOpen() {
    for (const path of this.#open) if (!this.#levels.has(path)) void this.#load(path)
  }

  /** @param {string} path */
  async #load(path) {
    if (!this.#levels.has(path)) this.#levels.set(path, 'loading')
    try {
      const query = { prefix: path, depth: 1 }
      const { tree } = await get('files', '/api/files/tree', { query, signal: this.signal })
      this.#levels.set(path, directoriesIn(tree))
      this.#error = undefined
    } catch (error) {
      if (this.signal.aborted) return
      this.#levels.delete(path)
      if (path === '') this.#error = error
      else this.#open.delete(path) // The directory is gone.
    }
    this.update()
  }

  template() {
    return html`
      <nav class="tree" aria-label="Folders" @keydown=${this.#keys}>
        <a class="tree-row" href="#/files/" aria-current=${this.#current === '' ? 'page' : nothing}>
          <span class="tree-toggle"></span>${icon('folder')}<span class="tree-name">All files</span>
        </a>
        ${this.#error ? errorNotice(this.#error) : this.#level('')}
      </nav>`
  }

  /** @param {string} path @returns {unknown} */
  #level(path) {
    const directories = this.#levels.get(path)
    if (!Array.isArray(directories) || directories.length === 0) return nothing
    return html`<ul>${directories.map((directory) => this.#row(directory))}</ul>`
  }

  /** @param {Api.DirectoryNode} directory */
  #row({ name, path: bare, file_count: count }) {
    const path = `${bare.replace(/\/$/, '')}/`
    const isOpen = this.#open.has(path)
    return html`
      <li>
        <div class="tree-line">
          <button class="tree-toggle" aria-expanded=${isOpen} aria-label="Open ${name}" @click=${() => this.#toggle(path)}>${icon('chevron')}</button>
          <a class="tree-row" data-tree=${path} href=${hrefToPath(path)} aria-current=${path === this.#current ? 'page' : nothing}>
            <span class="tree-name">${name}</span><span class="tree-count">${formatNumber(count)}</span>
          </a>
        </div>
        ${isOpen ? this.#level(path) : nothing}
      </li>`
  }

  /** @param {string} path */
  #toggle(path) {
    if (this.#open.delete(path)) return this.update()
    this.#open.add(path)
    void this.#load(path)
    return this.update()
  }

  /** @param {KeyboardEvent} event */
  #keys = (event) => {
    const link = /** @type {HTMLElement} */ (event.target).closest('a')
    if (!link) return
    const path = link.dataset.tree
    const links = [...this.querySelectorAll('a')]
    const at = links.indexOf(link)
    if (event.key === 'ArrowDown') links[at + 1]?.focus()
    else if (event.key === 'ArrowUp') links[at - 1]?.focus()
    else if (event.key === 'ArrowRight' && path && !this.#open.has(path)) this.#toggle(path)
    else if (event.key === 'ArrowLeft' && path && this.#open.has(path)) this.#toggle(path)
    else return
    event.preventDefault()
  }
}

customElements.define('folder-tree', FolderTree)
