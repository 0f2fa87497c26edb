import { get, mayEdit } from '../../api/client.js'
import { navigate } from '../../core/router.js'
import { html, nothing, Resource } from '../../core/view.js'
import { formatBytes, formatCount } from '../../ui/format.js'
import { Selection } from '../../ui/selection.js'
import { attempt, icon, show, toast } from '../../ui/states.js'
import { repeat } from '../../vendor/directives/repeat.js'
import { categoryBar } from '../category-bar.js'
import { deleteDialog, moveDialog, sizeOf } from '../change-dialogs.js'
import { announceFilesChanged, currentPath, FilesView, hrefToPath } from '../content.js'
import { directoriesIn } from '../paths.js'
import { FileSource } from './file-source.js'
import { folderHeader, nothingHere } from './folder-header.js'
import { entryRow, entryTile, hrefOf, listHeader, waitingRow } from './rows.js'
import '../../ui/virtual-list.js'

/** @import { Entry } from '../change-dialogs.js' */

const tilesAtOnce = 200

/** What lies in a folder, or below it while a search or category is chosen. Its state is in the address. */
export class FolderContents extends FilesView {
  #range = { first: 0, last: 1 }
  #tiles = tilesAtOnce
  #source = new Resource(this, (signal) => {
    void this.#directory.reload()
    void this.#categories.reload()
    const query = {
      prefix: currentPath().folder,
      recursive: this.#isDeep() ? undefined : 'false',
      sort: 'path',
      ...this.values('search', 'category', 'sort'),
    }
    return new FileSource(query, signal).open(this.#range.first, this.#range.last)
  })
  #directory = new Resource(this, async (signal) => {
    const query = { prefix: currentPath().folder, depth: 1 }
    const { tree } = await get('files', '/api/files/tree', { query, signal })
    return { ...tree, directories: directoriesIn(tree) }
  })
  #categories = new Resource(this, async (signal) => {
    const query = { prefix: currentPath().folder }
    return (await get('files', '/api/files/categories', { query, signal })).categories
  })
  /** @type {Selection<Entry>} directories count with all that is below them */
  #selection = new Selection(
    ({ path }) => path,
    () => this.update(),
  )

  // Not the file whose details are open.
  get address() {
    const { folder } = currentPath()
    return JSON.stringify({ folder, ...this.values('search', 'category', 'sort') })
  }

  entered() {
    this.#selection.choose([])
    this.#source.value = undefined
    this.#source.error = undefined
    this.#directory.value = undefined
    this.#range = { first: 0, last: 1 }
    this.#tiles = tilesAtOnce
  }

  /** The rest is tried again with it. @returns {unknown} */
  reload() {
    return this.#source.reload()
  }

  #isDeep() {
    return this.query.has('search') || this.query.has('category')
  }

  /** @param {Record<string, string>} changes @param {{ replace?: boolean }} [options] */
  open(changes, options) {
    const query = { ...Object.fromEntries(this.query), file: '', ...changes }
    navigate(hrefToPath(currentPath().folder, query), options)
  }

  /** Opens the file before or after the one whose details are open. @param {number} by */
  step(by) {
    const { file } = currentPath()
    const source = this.#source.value
    for (let at = 0; source && at < source.total; at += 1) {
      if (source.at(at)?.path !== file) continue
      const next = source.at(at + by)
      if (next) return navigate(hrefOf(next, this.#searched(), this.query))
    }
    return toast(`This is the ${by > 0 ? 'last' : 'first'} file of the list`)
  }

  #searched() {
    return this.#isDeep() ? currentPath().folder : undefined
  }

  template() {
    const { folder } = currentPath()
    const category = this.query.get('category') ?? ''
    return html`
      <section class="folder" aria-label="Folder">
        ${folderHeader(this, folder)}
        ${this.#selection.entries.length > 0 ? this.#selectionBar() : categoryBar(this.#categories.value ?? [], category, (value) => this.open({ category: value }))}
        ${show(this.#source, (source) => this.#content(source), 12)}
      </section>`
  }

  /** @param {FileSource} source */
  #content(source) {
    const directories = this.#directories().length
    const count = directories + source.total
    if (count === 0) return nothingHere(this, currentPath().folder)
    return html`
      <p class="folder-summary muted" role="status">${this.#summary(source)}</p>
      ${this.query.get('view') === 'grid' ? this.#grid(source, count) : this.#list(source, directories, count)}`
  }

  /** @param {FileSource} source @param {number} directories @param {number} count */
  #list(source, directories, count) {
    const sort = this.query.get('sort') ?? 'path'
    const all = {
      isChosen: this.#selection.entries.length === count,
      choose: () => this.#chooseAll(count),
    }
    const rows = {
      label: 'Files',
      header: listHeader(sort, (sort) => this.open({ sort }), mayEdit('files') ? all : undefined),
      count,
      draw: (/** @type {number} */ index) => {
        const entry = this.#entryAt(index)
        return entry ? entryRow(entry, this.#stateOf(entry, index)) : waitingRow()
      },
      onRange: (/** @type {number} */ first, /** @type {number} */ last) =>
        this.#want(source, first - directories, last - directories),
    }
    return html`<virtual-list class="table-frame file-list" .rows=${rows} @keydown=${this.#keys}></virtual-list>`
  }

  /** @param {FileSource} source @param {number} count */
  #grid(source, count) {
    const shown = Array.from({ length: Math.min(count, this.#tiles) }, (_, at) => this.#entryAt(at))
    const more = () => {
      this.#tiles += tilesAtOnce
      this.#want(source, 0, this.#tiles)
      this.update()
    }
    return html`
      <ul class="tiles" aria-label="Files">
        ${repeat(
          shown.flatMap((entry, at) => (entry ? [{ entry, at }] : [])),
          ({ entry }) => ('sha256' in entry ? entry.sha256 : '') + entry.path,
          ({ entry, at }) => entryTile(entry, this.#stateOf(entry, at)),
        )}
      </ul>
      ${count > this.#tiles ? html`<button class="button" @click=${more}>Show more</button>` : nothing}`
  }

  /** @param {number} index @returns {Entry | undefined} */
  #entryAt = (index) => {
    const directories = this.#directories()
    return directories[index] ?? this.#source.value?.at(index - directories.length)
  }

  /** @param {Entry} entry @param {number} index */
  #stateOf(entry, index) {
    const folder = this.#searched()
    return {
      isChosen: this.#selection.has(entry),
      choose: (/** @type {boolean} */ isRange) => this.#selection.toggle(index, isRange, this.#entryAt),
      href: hrefOf(entry, folder, this.query),
      isCurrent: entry.path === currentPath().file,
      folder,
    }
  }

  /** @param {FileSource} source */
  #summary(source) {
    if (this.#isDeep()) return `${source.isExact ? '' : 'more than '}${formatCount(source.total, 'file')} found`
    const tree = this.#directory.value
    if (!tree) return ''
    const byBytes = '; so many are sorted by the bytes of their names: 10 before 2'
    const order = source.isByName && !source.isNatural ? byBytes : ''
    return `${formatCount(tree.file_count, 'file')}, ${formatBytes(tree.total_size)} in this folder and below${order}`
  }

  #directories() {
    return (!this.#isDeep() && this.#directory.value?.directories) || []
  }

  /** @param {FileSource} source @param {number} first @param {number} last */
  #want(source, first, last) {
    this.#range = { first: Math.max(0, first), last: Math.max(1, Math.min(source.total, last)) }
    source.want(this.#range.first, this.#range.last, (error) => {
      if (source !== this.#source.value) return
      this.#source.error = error
      this.update()
    })
  }

  #selectionBar() {
    const { entries } = this.#selection
    const bytes = entries.reduce((sum, each) => sum + sizeOf(each), 0)
    return html`
      <div class="selection-bar" role="region" aria-label="Selection">
        <span>${formatCount(entries.length, 'item')} selected, ${formatBytes(bytes)}</span>
        <span class="spacer"></span>
        <button class="button" @click=${() => this.#change(moveDialog)}>${icon('move')} Move</button>
        <button class="button" @click=${() => this.#change(deleteDialog)}>${icon('trash')} Delete</button>
        <button class="button" @click=${() => this.#selection.choose([])}>Clear</button>
      </div>`
  }

  /** @param {number} count of the whole list */
  #chooseAll = (count) =>
    attempt(async () => {
      if (this.#selection.entries.length === count) return this.#selection.choose([])
      const files = await this.#source.value?.all()
      return this.#selection.choose([...this.#directories(), ...(files ?? [])])
    })

  // Moves or deletes the selection. Details of a file that is gone are closed first.
  /** @param {typeof moveDialog | typeof deleteDialog} dialog */
  async #change(dialog) {
    const { entries } = this.#selection
    if (await dialog(entries)) {
      if (entries.some(({ path }) => path === currentPath().file)) this.open({})
      this.#selection.choose([])
    }
    announceFilesChanged()
  }

  /** @param {KeyboardEvent} event */
  #keys = (event) => {
    if (event.key !== ' ') return
    const row = /** @type {HTMLElement} */ (event.target).closest('.virtual-row')
    /** @type {HTMLInputElement | null | undefined} */
    const box = row?.querySelector('input[type=checkbox]')
    if (!box || event.target === box) return
    event.preventDefault()
    box.dispatchEvent(new MouseEvent('click', { shiftKey: event.shiftKey, bubbles: true, cancelable: true }))
  }
}

customElements.define('folder-contents', FolderContents)
