import { encodePath, get } from '../../api/client.js'
import { html, nothing } from '../../core/html.js'
import { currentRoute, navigate, routeChanges } from '../../core/router.js'
import { mayEdit } from '../../core/session.js'
import { Resource, View } from '../../core/view.js'
import { saveBlob } from '../../ui/clipboard.js'
import { searchBox } from '../../ui/form.js'
import { formatBytes, formatCount } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { empty, failed, loading } from '../../ui/states.js'
import { attempt } from '../../ui/toast.js'
import { getBlob } from '../content.js'
import { deleteDialog } from '../delete-dialog.js'
import { announceFilesChanged, filesChanged } from '../file-changes.js'
import { moveDialog } from '../move-dialog.js'
import { directoriesIn, hrefToPath, nameOf } from '../paths.js'
import { openShareDialog } from '../sharing/share-dialog.js'
import { chooseFiles } from '../upload/choose-files.js'
import { categoryBar } from './category-bar.js'
import { FileSource } from './file-source.js'
import { directoryRow, fileRow, listHeader, waitingRow } from './rows.js'
import { Selection } from './selection.js'
import '../../ui/virtual-list.js'

/** @import { DirectoryNode } from '../../api/schema.d.ts' */

/** What lies in a folder, or below it while a search or category is chosen. Its state is in the address. */
class FolderContents extends View {
  #folder = ''
  #file = ''
  #address = ''
  /** @type {FileSource | undefined} */
  #source
  #range = { first: 0, last: 1 }
  #loading = new AbortController()
  #directory = new Resource(this, async (signal) => {
    const query = { prefix: this.#folder, depth: 1 }
    return (await get('files', '/api/files/tree', { query, signal })).tree
  })
  #categories = new Resource(this, async (signal) => {
    const query = { prefix: this.#folder }
    return (await get('files', '/api/files/categories', { query, signal })).categories
  })
  #selection = new Selection(() => this.update())
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing

  /** @param {string} folder */
  set folder(folder) {
    this.#folder = folder
    if (this.isConnected) this.#follow()
  }

  /** @param {string} file the one whose details are shown */
  set file(file) {
    this.#file = file
    this.update()
  }

  opened() {
    const { signal } = this
    routeChanges.addEventListener('change', () => this.#follow(), { signal })
    filesChanged.addEventListener('change', () => this.#reload(), { signal })
    this.#address = ''
    this.#follow()
  }

  // Loads again when the folder or what is wanted of it changed, not when another file's details are opened.
  #follow() {
    const { segments } = currentRoute()
    const address = JSON.stringify([this.#folder, this.#wanted()])
    if (segments[0] !== 'files' || address === this.#address) return
    this.#address = address
    this.#selection.clear()
    this.#source = undefined
    this.#directory.value = undefined
    this.#range = { first: 0, last: 1 }
    this.#reload()
  }

  #reload() {
    this.#loading.abort()
    this.#loading = new AbortController()
    const { search, category, sort } = this.#wanted()
    const source = new FileSource(
      {
        prefix: this.#folder || undefined,
        recursive: search || category ? undefined : 'false',
        search: search || undefined,
        category: category || undefined,
        sort,
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

  #wanted() {
    const { query } = currentRoute()
    return {
      search: query.get('search') ?? '',
      category: query.get('category') ?? '',
      sort: query.get('sort') ?? 'path',
    }
  }

  /** @param {Record<string, string>} changes @param {boolean} [replace] */
  #open(changes, replace = false) {
    const query = new URLSearchParams(currentRoute().query)
    query.delete('file')
    for (const [name, value] of Object.entries(changes)) {
      if (value) query.set(name, value)
      else query.delete(name)
    }
    navigate(hrefToPath(this.#folder, query), { replace })
  }

  template() {
    const { search, category } = this.#wanted()
    return html`
      <section class="folder" aria-label="Folder">
        <header class="view-header">
          ${breadcrumb(this.#folder)}
          <div class="toolbar">
            ${searchBox({
              label: this.#folder ? 'Search below this folder' : 'Search all files',
              value: search,
              onInput: this.#search,
            })}
            ${this.#folder ? html`<button class="button" @click=${this.#download}>${icon('download')} Download</button>` : nothing}
            ${this.#folder && mayEdit('files') ? html`<button class="button" @click=${() => openShareDialog(this.#folder)}>${icon('lock')} Share</button>` : nothing}
            ${
              mayEdit('files')
                ? html`
                  <button class="button" @click=${() => void chooseFiles(this.#folder, true)}>${icon('folder')} Upload folder</button>
                  <button class="button primary" data-key="n" @click=${() => void chooseFiles(this.#folder, false)}>${icon('upload')} Upload files</button>`
                : nothing
            }
          </div>
        </header>
        ${this.#selection.size > 0 ? this.#selectionBar() : categoryBar(this.#categories.value ?? [], category, (value) => this.#open({ category: value }))}
        ${this.#content()}
      </section>`
  }

  // The whole folder as one archive.
  #download = () =>
    attempt(async () => {
      const headers = { accept: 'application/zip' }
      const archive = await getBlob(`/api/trees/${encodePath(this.#folder)}`, { headers })
      saveBlob(`${nameOf(this.#folder)}.zip`, archive)
    })

  #content() {
    const source = this.#source
    const directories = this.#directories()
    if (!source || (!source.isReady && !source.error)) return loading(12)
    if (source.error && !source.isReady) return failed(source.error, () => this.#reload())
    const count = directories.length + source.total
    if (count === 0) return this.#nothingHere()
    const { sort } = this.#wanted()
    return html`
      ${source.error ? failed(source.error, () => this.#reload()) : nothing}
      <p class="folder-summary muted" role="status">${this.#summary(source)}</p>
      <virtual-list
        class="table-frame file-list"
        .label=${'Files'}
        .header=${listHeader(sort, (value) => this.#open({ sort: value === 'path' ? '' : value }))}
        .drawRow=${(/** @type {number} */ index) => this.#row(index, directories, source)}
        .onRange=${(/** @type {number} */ first, /** @type {number} */ last) =>
          this.#want(source, first - directories.length, last - directories.length)}
        .count=${count}
        @keydown=${this.#keys}
      ></virtual-list>`
  }

  /** @param {FileSource} source */
  #summary(source) {
    const { search, category } = this.#wanted()
    if (search || category)
      return `${source.isExact ? '' : 'more than '}${formatCount(source.total, 'file')} found`
    const tree = this.#directory.value
    return tree
      ? `${formatCount(tree.file_count, 'file')}, ${formatBytes(tree.total_size)} in this folder and below`
      : ''
  }

  /** @param {number} index @param {DirectoryNode[]} directories @param {FileSource} source */
  #row(index, directories, source) {
    const directory = directories[index]
    if (directory) return directoryRow(directory, this.#selection)
    const file = source.at(index - directories.length)
    if (!file) return waitingRow()
    const { search, category } = this.#wanted()
    return fileRow(file, {
      selection: this.#selection,
      folder: this.#folder,
      isCurrent: file.path === this.#file,
      isDeep: Boolean(search || category),
      query: currentRoute().query,
    })
  }

  #directories() {
    const { search, category } = this.#wanted()
    return search || category ? [] : directoriesIn(this.#directory.value)
  }

  #nothingHere() {
    const { search, category } = this.#wanted()
    if (search || category) {
      return empty({
        icon: 'search',
        title: search ? `No file contains “${search}”` : `No ${category} files here`,
        action: html`<button class="button" @click=${() => this.#open({ search: '', category: '' })}>Show all files</button>`,
      })
    }
    return empty({
      icon: 'folder',
      title: this.#folder ? 'This folder is empty' : 'No files yet',
      text: mayEdit('files')
        ? 'Drop files or whole folders here, or choose them.'
        : 'Files that are uploaded appear here.',
      action: mayEdit('files')
        ? html`<button class="button primary" @click=${() => void chooseFiles(this.#folder, false)}>${icon('upload')} Upload files</button>`
        : nothing,
    })
  }

  /** @param {FileSource} source @param {number} first @param {number} last */
  #want(source, first, last) {
    this.#range = { first: Math.max(0, first), last: Math.max(1, Math.min(source.total, last)) }
    source.want(this.#range.first, this.#range.last)
  }

  #selectionBar() {
    const { bytes } = this.#selection
    return html`
      <div class="selection-bar" role="region" aria-label="Selection">
        <span>${formatCount(this.#selection.size, 'item')} selected, ${formatBytes(bytes)}</span>
        <span class="spacer"></span>
        <button class="button" @click=${() => this.#change(moveDialog)}>${icon('move')} Move</button>
        <button class="button" @click=${() => this.#change(deleteDialog)}>${icon('trash')} Delete</button>
        <button class="button" @click=${() => this.#selection.clear()}>Clear</button>
      </div>`
  }

  // Moves or deletes the selection. Details of a file that is gone are closed first.
  /** @param {typeof moveDialog | typeof deleteDialog} dialog */
  async #change(dialog) {
    const { files, directories } = this.#selection
    const outcome = await dialog({ files, directories, folder: this.#folder })
    if (outcome === undefined || outcome === false) return announceFilesChanged()
    if (files.some(({ path }) => path === this.#file)) this.#open({ file: '' })
    this.#selection.clear()
    return announceFilesChanged()
  }

  #search = (/** @type {string} */ value) => {
    clearTimeout(this.#typing)
    this.#typing = setTimeout(() => this.#open({ search: value.trim() }, true), 150)
  }

  /** @param {KeyboardEvent} event */
  #keys = (event) => {
    if (event.key !== ' ') return
    const row = /** @type {HTMLElement} */ (event.target).closest('.virtual-row')
    /** @type {HTMLInputElement | null | undefined} */
    const box = row?.querySelector('input[type=checkbox]')
    if (!box || event.target === box) return
    event.preventDefault()
    box.click()
  }
}

/** @param {string} folder */
function breadcrumb(folder) {
  const segments = folder.split('/').filter(Boolean)
  return html`
    <h1 class="breadcrumb path">
      <a href="#/files/">Files</a>
      ${segments.map(
        (segment, at) =>
          html`${icon('chevron')}<a href=${hrefToPath(`${segments.slice(0, at + 1).join('/')}/`)}>${segment}</a>`,
      )}
    </h1>`
}

customElements.define('folder-contents', FolderContents)
