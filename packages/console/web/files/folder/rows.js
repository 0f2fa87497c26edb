import { mayEdit } from '../../api/client.js'
import { html, nothing } from '../../core/view.js'
import { formatBytes, formatCount, formatDate, formatTime } from '../../ui/format.js'
import { icon } from '../../ui/states.js'
import { sortButton } from '../../ui/table.js'
import { contentUrl } from '../content.js'
import { hrefToPath, parentOf } from '../paths.js'

/** @import { IconName } from '../../ui/states.js' */

/**
 * What is drawn of one entry. `folder`: whose search or category the list is; undefined: the list is one folder's.
 * @typedef {{ isChosen: boolean, choose: (isRange: boolean) => void, href: string, isCurrent: boolean,
 *   folder?: string }} RowState
 */

/**
 * @param {string} sort
 * @param {(sort: string) => void} onSort
 * @param {{ isChosen: boolean, choose: () => void } | undefined} all
 */
export const listHeader = (sort, onSort, all) => html`
  <span class="cell check" role="columnheader">
    ${all ? html`<input type="checkbox" aria-label="Select all" .checked=${all.isChosen} @click=${all.choose} />` : html`<span class="sr-only">Selected</span>`}
  </span>
  ${sortable('Name', 'name', ['path', '-path'], sort, onSort)}
  ${sortable('Size', 'size', ['-size', 'size'], sort, onSort)}
  <span class="cell kind" role="columnheader">Kind</span>
  ${sortable('Changed', 'date', ['-updated_at', 'updated_at'], sort, onSort)}`

/**
 * @param {string} label
 * @param {string} column
 * @param {[string, string]} sorts
 * @param {string} current
 * @param {(sort: string) => void} onSort
 */
function sortable(label, column, sorts, current, onSort) {
  const { state, button } = sortButton(label, sorts, current, onSort)
  return html`<span class="cell ${column}" role="columnheader" aria-sort=${state}>${button}</span>`
}

/** @param {Api.FileRecord | Api.DirectoryNode} entry @param {RowState} state */
export const entryRow = (entry, state) => html`
  <span class="cell check" role="gridcell">${checkOf(entry, state)}</span>
  <span class="cell name ${state.isCurrent ? 'current' : ''}" role="gridcell">
    ${icon('sha256' in entry ? iconOf(entry.category) : 'folder')}${linkOf(entry, state)}
  </span>
  ${
    'sha256' in entry
      ? html`
        <span class="cell size" role="gridcell">${formatBytes(entry.size)}</span>
        <span class="cell kind" role="gridcell">${kindOf(entry.content_type)}</span>
        <span class="cell date" role="gridcell"><time datetime=${entry.updated_at} title=${formatTime(entry.updated_at)}>${formatDate(entry.updated_at)}</time></span>`
      : html`
        <span class="cell size" role="gridcell">${formatBytes(entry.total_size)}</span>
        <span class="cell kind" role="gridcell">${formatCount(entry.file_count, 'file')}</span>
        <span class="cell date" role="gridcell"></span>`
  }`

/** A row whose page is being loaded. */
export const waitingRow = () => html`
  <span class="cell check" role="gridcell"></span>
  <span class="cell name" role="gridcell"><span class="waiting" data-row tabindex="-1">Loading…</span></span>`

// The service makes no small pictures: a larger one is not worth its bytes here.
const maxThumbnailBytes = 4_000_000

/** An entry of the grid: images as themselves. @param {Api.FileRecord | Api.DirectoryNode} entry @param {RowState} state */
export const entryTile = (entry, state) => html`
  <li class="tile ${state.isCurrent ? 'current' : ''}">
    <div class="tile-picture">
      ${
        'sha256' in entry &&
        entry.category === 'image' &&
        entry.public !== false &&
        entry.size <= maxThumbnailBytes
          ? html`<img src=${contentUrl(entry.path, { sha256: entry.sha256 })} alt="" loading="lazy" decoding="async" />`
          : icon('sha256' in entry ? iconOf(entry.category) : 'folder')
      }
    </div>
    ${checkOf(entry, state)}${linkOf(entry, state)}
  </li>`

// In a search the name comes first, whatever folder it is in.
/** @param {Api.FileRecord | Api.DirectoryNode} entry @param {RowState} state */
const linkOf = ({ path, name }, { href, isCurrent, folder }) => html`
  <a data-row aria-current=${isCurrent ? 'true' : nothing} href=${href} title=${path}
    >${name}${folder === undefined ? nothing : html` <span class="dim">${parentOf(path).slice(folder.length)}</span>`}</a>`

/** @param {Api.FileRecord | Api.DirectoryNode} entry @param {RowState} state */
const checkOf = ({ name }, { isChosen, choose }) =>
  mayEdit('files')
    ? html`<input type="checkbox" tabindex="-1" aria-label="Select ${name}" .checked=${isChosen} @click=${(/** @type {MouseEvent} */ event) => choose(event.shiftKey)} />`
    : nothing

/**
 * The address of an entry. A search stays while its results are looked at.
 * @param {Api.FileRecord | Api.DirectoryNode} entry
 * @param {string | undefined} folder of the search
 * @param {URLSearchParams} query
 */
export function hrefOf(entry, folder, query) {
  const next = new URLSearchParams(query)
  next.delete('file')
  if (!('sha256' in entry)) return hrefToPath(`${entry.path.replace(/\/$/, '')}/`, viewOf(next))
  if (folder === undefined) return hrefToPath(entry.path, next)
  next.set('file', entry.path)
  return hrefToPath(folder, next)
}

// Of a folder to the next one only how it is looked at.
/** @param {URLSearchParams} query */
const viewOf = (query) => new URLSearchParams([...query].filter(([name]) => name === 'view'))

/** @param {string} category @returns {IconName} */
const iconOf = (category) => (category === 'image' ? 'image' : 'file')

/** "application/pdf" → "PDF"; "image/svg+xml" → "SVG". @param {string} contentType */
export function kindOf(contentType) {
  const [type = ''] = contentType.split(';')
  const known = names.get(type)
  if (known) return known
  const sub = type.split('/')[1] ?? type
  return sub
    .replace(/^(?:x-|vnd\.)/, '')
    .replace(/\+.*$/, '')
    .toUpperCase()
    .slice(0, 12)
}

const names = new Map([
  ['text/plain', 'Text'],
  ['text/javascript', 'JavaScript'],
  ['application/javascript', 'JavaScript'],
  ['text/markdown', 'Markdown'],
  ['application/octet-stream', 'Binary'],
  ['video/mp4', 'MP4 video'],
  ['audio/mpeg', 'MP3 audio'],
])
