import { encodePath, mayEdit } from '../../api/client.js'
import { html, nothing } from '../../core/view.js'
import { save } from '../../ui/copy.js'
import { searchBox } from '../../ui/form.js'
import { empty, icon } from '../../ui/states.js'
import { getBlob, hrefToPath } from '../content.js'
import { nameOf } from '../paths.js'
import { openRestoreDialog } from '../restore-dialog.js'
import { openShareDialog } from '../sharing/share-dialog.js'
import { chooseFiles } from '../upload/pick-files.js'

/** @import { RouteView } from '../../core/view.js' */

/** Where one is, and what can be done with the whole folder. @param {RouteView} view @param {string} folder */
export function folderHeader(view, folder) {
  const isGrid = view.query.get('view') === 'grid'
  return html`
    <header class="view-header">
      ${breadcrumb(folder)}
      <div class="toolbar">
        ${searchBox({
          label: folder ? 'Search below this folder' : 'Search all files',
          value: view.query.get('search') ?? '',
          onInput: view.search,
        })}
        <button class="icon-button framed" aria-label="Show as pictures" aria-pressed=${isGrid} @click=${() => view.open({ view: isGrid ? '' : 'grid' })}>${icon('grid')}</button>
        ${folder ? html`<button class="icon-button framed" aria-label="Download" title="Download" @click=${() => download(folder)}>${icon('download')}</button>` : nothing}
        ${folder && mayEdit('files') ? html`<button class="icon-button framed" aria-label="Share" title="Share" @click=${() => openShareDialog(folder)}>${icon('link')}</button>` : nothing}
        ${
          mayEdit('files')
            ? html`
              <button class="icon-button framed" aria-label="Restore to…" title="Restore to…" @click=${() => openRestoreDialog(folder)}>${icon('clock')}</button>
              <button class="button" @click=${() => chooseFiles(folder, true)}>${icon('folder')} Upload folder</button>
              <button class="button primary" data-key="n" @click=${() => chooseFiles(folder, false)}>${icon('upload')} Upload files</button>`
            : nothing
        }
      </div>
    </header>`
}

/** @param {RouteView} view @param {string} folder */
export function nothingHere({ query }, folder) {
  const [search, category] = [query.get('search'), query.get('category')]
  const all = html`<a class="button" href=${hrefToPath(folder)}>Show all files</a>`
  if (search) return empty('search', `No file contains “${search}”`, '', all)
  if (category) return empty('search', `No ${category} files here`, '', all)
  const title = folder ? 'This folder is empty' : 'No files yet'
  if (!mayEdit('files')) return empty('folder', title, 'Files that are uploaded appear here.')
  const upload = html`<button class="button primary" @click=${() => chooseFiles(folder, false)}>${icon('upload')} Upload files</button>`
  return empty('folder', title, 'Drop files or whole folders here, or choose them.', upload)
}

/** As one archive. @param {string} folder */
function download(folder) {
  const headers = { accept: 'application/zip' }
  return save(`${nameOf(folder)}.zip`, () => getBlob(`/api/trees/${encodePath(folder)}`, { headers }))
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
