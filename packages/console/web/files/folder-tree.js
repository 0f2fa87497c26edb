import { get } from '../api/client.js'
import { html, nothing, Resource } from '../core/view.js'
import { formatNumber } from '../ui/format.js'
import { icon, show } from '../ui/states.js'
import { currentPath, FilesView, hrefToPath, ownFolders } from './content.js'
import { directoriesIn } from './paths.js'

/** The directories as a tree, with those levels that are open. */
class FolderTree extends FilesView {
  /** Those that somebody opened or closed; others are open where they lead to the folder of the address. @type {Map<string, boolean>} */
  #open = new Map()
  /** The directories directly in each open one. @type {Resource<Map<string, Api.DirectoryNode[]>>} */
  #levels = new Resource(this, (signal) => this.#load(signal))

  get address() {
    return `/${currentPath().folder}`
  }

  // From the top down, so that directories that are gone are not asked for.
  /** @param {AbortSignal} signal */
  async #load(signal) {
    /** @type {Map<string, Api.DirectoryNode[]>} */
    const levels = new Map()
    const read = async (/** @type {string} */ prefix) => {
      const query = { prefix, depth: 1 }
      const { tree } = await get('files', '/api/files/tree', { query, signal })
      const directories = directoriesIn(tree)
      levels.set(prefix, directories)
      await Promise.all(directories.flatMap(({ path }) => (this.#isOpen(path) ? read(path) : [])))
      return tree
    }
    // Nothing may be in it yet.
    const readOwn = async (/** @type {string} */ path) => {
      const tree = await read(path).catch(() => ({ file_count: 0, total_size: 0, children: null }))
      return { ...tree, type: /** @type {const} */ ('directory'), path, name: path.slice(0, -1) }
    }
    const own = ownFolders()
    if (own) levels.set('', await Promise.all(own.map(readOwn)))
    else await read('')
    return levels
  }

  /** @param {string} path */
  #isOpen(path) {
    return this.#open.get(path) ?? this.address.startsWith(`/${path}`)
  }

  template() {
    const all = html`
      <a class="tree-row" href="#/files/" aria-current=${this.address === '/' ? 'page' : nothing}>
        <span class="tree-toggle"></span>${icon('folder')}<span class="tree-name">All files</span></a>`
    return html`
      <nav class="tree" aria-label="Folders" @keydown=${this.#keys}>
        ${ownFolders() ? nothing : all}
        ${show(this.#levels, (levels) => this.#level(levels, ''), 3)}
      </nav>`
  }

  /** @param {Map<string, Api.DirectoryNode[]>} levels @param {string} of @returns {unknown} */
  #level(levels, of) {
    const directories = levels.get(of) ?? []
    if (directories.length === 0) return nothing
    return html`
      <ul>
        ${directories.map(
          ({ name, path, file_count: count }) => html`
            <li>
              <div class="tree-line">
                <button class="tree-toggle" aria-expanded=${this.#isOpen(path)} aria-label="Open ${name}" @click=${() => this.#toggle(path)}>${icon('chevron')}</button>
                <a class="tree-row" data-tree=${path} href=${hrefToPath(path)} aria-current=${this.address === `/${path}` ? 'page' : nothing}>
                  <span class="tree-name">${name}</span><span class="tree-count">${formatNumber(count)}</span>
                </a>
              </div>
              ${this.#isOpen(path) ? this.#level(levels, path) : nothing}
            </li>`,
        )}
      </ul>`
  }

  /** @param {string} path */
  #toggle(path) {
    this.#open.set(path, !this.#isOpen(path))
    void this.reload()
  }

  /** @param {KeyboardEvent} event */
  #keys = (event) => {
    const link = /** @type {HTMLElement} */ (event.target).closest('a')
    if (!link) return
    const path = link.dataset.tree
    const links = [...this.querySelectorAll('a')]
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) links[links.indexOf(link) + step]?.focus()
    else if (path && event.key === (this.#isOpen(path) ? 'ArrowLeft' : 'ArrowRight')) this.#toggle(path)
    else return
    event.preventDefault()
  }
}

customElements.define('folder-tree', FolderTree)
