import { get, mayEdit } from '../../api/client.js'
import { navigate } from '../../core/router.js'
import { html, nothing, Resource, RouteView } from '../../core/view.js'
import { formatBytes, formatCount } from '../../ui/format.js'
import { Selection } from '../../ui/selection.js'
import { attempt, failed, icon, loading, toast } from '../../ui/states.js'
import { repeat } from '../../vendor/directives/repeat.js'
import { categoryBar } from '../category-bar.js'
import { deleteDialog, moveDialog } from '../change-dialogs.js'
import { announceFilesChanged, currentPath, filesChanged } from '../content.js'
import { directoriesIn, hrefToPath } from '../paths.js'
import { FileSource } from './file-source.js'
import { folderHeader, nothingHere } from './folder-header.js'
import { entryRow, entryTile, hrefOf, listHeader, waitingRow } from './rows.js'
import '../../ui/virtual-list.js'

/** @typedef {Api.FileRecord | Api.DirectoryNode} Entry */

const tilesAtOnce = 200

/** What lies in a folder, or below it while a search or category is chosen. Its state is in the address. */
export class FolderContents extends RouteView {
  /** @type {FileSource | undefined} */
  #source
  #range = { first: 0, last: 1 }
  #tiles = tilesAtOnce
  #loading = new AbortController()
  #directory = new Resource(this, async (signal) => {
    const query = { prefix: currentPath().folder, depth: 1 }
    return (await get('files', '/api/files/tree', { query, signal })).tree
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

  opened() {
    filesChanged.addEventListener('change', () => this.reload(), { signal: this.signal })
    super.opened()
  }

  // Not the file whose details are open.
  get address() {
    const { folder } = currentPath()
    return JSON.stringify({ folder, ...this.values('search', 'category', 'sort') })
  }

  entered() {
    this.#selection.choose([])
    this.#source = undefined
    this.#directory.value = undefined
    this.#range = { first: 0, last: 1 }
    this.#tiles = tilesAtOnce
  }

  reload() {
    this.#loading.abort()
    this.#loading = new AbortController()
    const { folder } = currentPath()
    const source = new FileSource(
      {
        prefix: folder || undefined,
        recursive: this.#isDeep() ? undefined : 'false',
        sort: 'path',
        ...this.values('search', 'category', 'sort'),
      },
      this.#range,
      () => {
        // The rows stay until newer ones are there.
        if (source.isReady || source.error) this.#source = source
        this.update()
      },
      this.#loading.signal,
    )
    void this.#directory.reload()
    void this.#categories.reload()
  }

  #isDeep() {
    return this.query.has('search') || this.query.has('category')
  }

  /** @param {Record<string, string>} changes @param {{ replace?: boolean }} [options] */
  open(changes, options) {
    const query = new URLSearchParams(this.query)
    for (const [name, value] of Object.entries({ file: '', ...changes })) {
      if (value) query.set(name, value)
      else query.delete(name)
    }
    navigate(hrefToPath(currentPath().folder, query), options)
  }

  /** Opens the file before or after the one whose details are open. @param {number} by */
  step(by) {
    const { file } = currentPath()
    const { total = 0 } = this.#source ?? {}
    for (let at = 0; at < total; at += 1) {
      if (this.#source?.at(at)?.path !== file) continue
      const next = this.#source.at(at + by)
      if (next) return navigate(hrefOf(next, this.#searched(), this.query))
    }
    return toast(
      by > 0 ? 'This is the last file of the list' : 'This is the first file of the list',
    )
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
        ${this.#content()}
      </section>`
  }

  #content() {
    const source = this.#source
    if (!source || (!source.isReady && !source.error)) return loading(12)
    const failure = source.error ? failed(source.error, () => this.reload()) : nothing
    if (!source.isReady) return failure
    const directories = this.#directories()
    const count = directories.length + source.total
    if (count === 0) return nothingHere(this, currentPath().folder)
    return html`
      ${failure}
      <p class="folder-summary muted" role="status">${this.#summary(source)}</p>
      ${this.query.get('view') === 'grid' ? this.#grid(source, count) : this.#list(source, directories.length, count)}`
  }

  /** @param {FileSource} source @param {number} directories @param {number} count */
  #list(source, directories, count) {
    const sort = this.query.get('sort') ?? 'path'
    const all = {
      isChosen: this.#selection.entries.length === count,
      choose: () => this.#chooseAll(count),
    }
    return html`
      <virtual-list
        class="table-frame file-list"
        .label=${'Files'}
        .header=${listHeader(sort, (value) => this.open({ sort: value === 'path' ? '' : value }), mayEdit('files') ? all : undefined)}
        .drawRow=${(/** @type {number} */ index) => {
          const entry = this.#entryAt(index)
          return entry ? entryRow(entry, this.#stateOf(entry, index)) : waitingRow()
        }}
        .onRange=${(/** @type {number} */ first, /** @type {number} */ last) =>
          this.#want(source, first - directories, last - directories)}
        .count=${count}
        @keydown=${this.#keys}
      ></virtual-list>`
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
          ({ entry }) => entry.path,
          ({ entry, at }) => entryTile(entry, this.#stateOf(entry, at)),
        )}
      </ul>
      ${count > this.#tiles ? html`<button class="button" @click=${more}>Show more</button>` : nothing}`
  }

  /** @param {number} index @returns {Entry | undefined} */
  #entryAt = (index) => {
    const directories = this.#directories()
    return directories[index] ?? this.#source?.at(index - directories.length)
  }

  /** @param {Entry} entry @param {number} index */
  #stateOf(entry, index) {
    const folder = this.#searched()
    return {
      isChosen: this.#selection.has(entry),
      choose: (/** @type {boolean} */ isRange) =>
        this.#selection.toggle(index, isRange, this.#entryAt),
      href: hrefOf(entry, folder, this.query),
      isCurrent: entry.path === currentPath().file,
      folder,
    }
  }

  /** @param {FileSource} source */
  #summary(source) {
    if (this.#isDeep())
      return `${source.isExact ? '' : 'more than '}${formatCount(source.total, 'file')} found`
    const tree = this.#directory.value
    const order =
      source.isByName && !source.isNatural
        ? '; so many are sorted by the bytes of their names: 10 before 2'
        : ''
    return tree
      ? `${formatCount(tree.file_count, 'file')}, ${formatBytes(tree.total_size)} in this folder and below${order}`
      : ''
  }

  #directories() {
    return this.#isDeep() ? [] : directoriesIn(this.#directory.value)
  }

  /** @param {FileSource} source @param {number} first @param {number} last */
  #want(source, first, last) {
    this.#range = { first: Math.max(0, first), last: Math.max(1, Math.min(source.total, last)) }
    source.want(this.#range.first, this.#range.last)
  }

  #selectionBar() {
    const { entries } = this.#selection
    const bytes = entries.reduce(
      (sum, each) => sum + ('sha256' in each ? each.size : each.total_size),
      0,
    )
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
      const files = await this.#source?.all()
      return this.#selection.choose([...this.#directories(), ...(files ?? [])])
    })

  // Moves or deletes the selection. Details of a file that is gone are closed first.
  /** @param {typeof moveDialog | typeof deleteDialog} dialog */
  async #change(dialog) {
    const { entries } = this.#selection
    const files = entries.flatMap((entry) => ('sha256' in entry ? [entry] : []))
    const directories = entries.flatMap((entry) => ('sha256' in entry ? [] : [entry]))
    const { folder, file } = currentPath()
    if (await dialog({ files, directories, folder })) {
      if (files.some(({ path }) => path === file)) this.open({})
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
    box.dispatchEvent(
      new MouseEvent('click', { shiftKey: event.shiftKey, bubbles: true, cancelable: true }),
    )
  }
}

customElements.define('folder-contents', FolderContents)
