import { html, nothing } from '../../core/html.js'
import { mayEdit } from '../../core/session.js'
import { formatBytes, formatCount, formatDate, formatTime } from '../../ui/format.js'
import { icon } from '../../ui/icons.js'
import { iconOf, kindOf } from '../kinds.js'
import { hrefToPath } from '../paths.js'

/**
 * @import { DirectoryNode, FileRecord } from '../../api/schema.d.ts'
 * @import { Selection } from './selection.js'
 */

/** @param {string} sort @param {(sort: string) => void} onSort */
export const listHeader = (sort, onSort) => html`
  <span class="cell check" role="columnheader"><span class="sr-only">Selected</span></span>
  ${sortable('Name', 'name', ['path', '-path'], sort, onSort)}
  ${sortable('Size', 'size', ['size', '-size'], sort, onSort)}
  <span class="cell kind" role="columnheader">Kind</span>
  ${sortable('Changed', 'date', ['updated_at', '-updated_at'], sort, onSort)}`

/**
 * @param {string} label
 * @param {string} column
 * @param {[string, string]} sorts
 * @param {string} current
 * @param {(sort: string) => void} onSort
 */
function sortable(label, column, [ascending, descending], current, onSort) {
  const state = current === ascending ? 'ascending' : current === descending ? 'descending' : 'none'
  // Sizes and dates are looked at from the largest and newest.
  const first = column === 'name' ? ascending : descending
  const other = first === ascending ? descending : ascending
  return html`
    <span class="cell ${column}" role="columnheader" aria-sort=${state}>
      <button class="sort" @click=${() => onSort(current === first ? other : first)}>${label}</button>
    </span>`
}

/** @param {DirectoryNode} directory @param {Selection} selection */
export const directoryRow = (directory, selection) => html`
  ${check(directory, directory.name, selection)}
  <span class="cell name" role="gridcell">
    ${icon('folder')}<a data-row href=${hrefToPath(`${directory.path.replace(/\/$/, '')}/`)}>${directory.name}</a>
  </span>
  <span class="cell size" role="gridcell">${formatBytes(directory.total_size)}</span>
  <span class="cell kind" role="gridcell">${formatCount(directory.file_count, 'file')}</span>
  <span class="cell date" role="gridcell"></span>`

/**
 * @param {FileRecord} file
 * @param {{ selection: Selection, folder: string, isCurrent: boolean, isDeep: boolean, query: URLSearchParams }} options
 */
export const fileRow = (file, { selection, folder, isCurrent, isDeep, query }) => html`
  ${check(file, file.name, selection)}
  <span class="cell name ${isCurrent ? 'current' : ''}" role="gridcell">
    ${icon(iconOf(file.category))}<a data-row aria-current=${isCurrent ? 'true' : nothing} href=${isDeep ? hrefToPath(folder, withFile(query, file.path)) : hrefToPath(file.path, query)} title=${file.path}
      >${isDeep ? html`<span class="dim">${file.path.slice(folder.length, -file.name.length)}</span>` : nothing}${file.name}</a>
  </span>
  <span class="cell size" role="gridcell">${formatBytes(file.size)}</span>
  <span class="cell kind" role="gridcell">${kindOf(file.content_type)}</span>
  <span class="cell date" role="gridcell"><time datetime=${file.updated_at} title=${formatTime(file.updated_at)}>${formatDate(file.updated_at)}</time></span>`

/** A row whose page is being loaded. */
export const waitingRow = () => html`
  <span class="cell check" role="gridcell"></span>
  <span class="cell name" role="gridcell"><span class="waiting" data-row tabindex="-1">Loading…</span></span>`

/** @param {FileRecord | DirectoryNode} entry @param {string} name @param {Selection} selection */
const check = (entry, name, selection) => html`
  <span class="cell check" role="gridcell">
    ${
      mayEdit('files')
        ? html`<input type="checkbox" tabindex="-1" aria-label="Select ${name}" .checked=${selection.has(entry)} @change=${() => selection.toggle(entry)} />`
        : nothing
    }
  </span>`

// A search stays while its results are looked at.
/** @param {URLSearchParams} query @param {string} path */
function withFile(query, path) {
  const next = new URLSearchParams(query)
  next.set('file', path)
  return next
}
