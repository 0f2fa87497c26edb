import { mayEdit } from '../../api/client.js'
import { html, nothing } from '../../core/view.js'
import { formatBytes, formatCount, formatDate, formatTime } from '../../ui/format.js'
import { icon } from '../../ui/states.js'
import { sortButton } from '../../ui/table.js'
import { sizeOf } from '../change-dialogs.js'
import { contentUrl, giveWay, hrefToPath } from '../content.js'
import { parentOf } from '../paths.js'

/** @import { Entry } from '../change-dialogs.js' */

/**
 * What is drawn of one entry. `folder`: whose search or category the list is; undefined: the list is one folder's.
 * @typedef {{ isChosen: boolean, choose: (isRange: boolean) => void, href: string, isCurrent: boolean,
 *   folder?: string }} RowState
 */

/**
 * @param {string} current
 * @param {(sort: string) => void} onSort
 * @param {{ isChosen: boolean, choose: () => void } | undefined} all
 */
export function listHeader(current, onSort, all) {
  /** @param {string} label @param {string} column @param {[string, string]} sorts */
  const sortable = (label, column, sorts) => {
    const { state, button } = sortButton(label, sorts, current, onSort)
    return html`<span class="cell ${column}" role="columnheader" aria-sort=${state}>${button}</span>`
  }
  return html`
    <span class="cell check" role="columnheader">
      ${all ? html`<input type="checkbox" aria-label="Select all" .checked=${all.isChosen} @click=${all.choose} />` : html`<span class="sr-only">Selected</span>`}
    </span>
    ${sortable('Name', 'name', ['path', '-path'])}
    ${sortable('Size', 'size', ['-size', 'size'])}
    <span class="cell kind" role="columnheader">Kind</span>
    ${sortable('Changed', 'date', ['-updated_at', 'updated_at'])}`
}

/** @param {Entry} entry @param {RowState} state */
export const entryRow = (entry, state) => html`
  <span class="cell check" role="gridcell">${checkOf(entry, state)}</span>
  <span class="cell name ${state.isCurrent ? 'current' : ''}" role="gridcell">
    ${iconOf(entry)}${linkOf(entry, state)}
  </span>
  <span class="cell size" role="gridcell">${formatBytes(sizeOf(entry))}</span>
  <span class="cell kind" role="gridcell">${'sha256' in entry ? entry.category : formatCount(entry.file_count, 'file')}</span>
  <span class="cell date" role="gridcell">${'sha256' in entry ? html`<time datetime=${entry.updated_at} title=${formatTime(entry.updated_at)}>${formatDate(entry.updated_at)}</time>` : nothing}</span>`

/** A row whose page is being loaded. */
export const waitingRow = () => html`
  <span class="cell check" role="gridcell"></span>
  <span class="cell name" role="gridcell"><span class="waiting" data-row tabindex="-1">Loading…</span></span>`

// The service makes no small pictures: a larger one is not worth its bytes here.
/** @param {Entry} entry @returns {entry is Api.FileRecord} */
const isPicture = (entry) =>
  'sha256' in entry && entry.category === 'image' && entry.public !== false && entry.size <= 4e6

/** An entry of the grid: images as themselves. @param {Entry} entry @param {RowState} state */
export const entryTile = (entry, state) => html`
  <li class="tile ${state.isCurrent ? 'current' : ''}">
    <div class="tile-picture">
      ${isPicture(entry) ? html`<img src=${contentUrl(entry.path, { sha256: entry.sha256 })} alt="" loading="lazy" decoding="async" @error=${giveWay} />` : nothing}${iconOf(entry)}
    </div>
    ${checkOf(entry, state)}${linkOf(entry, state)}
  </li>`

// In a search the name comes first, whatever folder it is in.
/** @param {Entry} entry @param {RowState} state */
const linkOf = ({ path, name }, { href, isCurrent, folder }) => html`
  <a data-row aria-current=${isCurrent ? 'true' : nothing} href=${href} title=${path}
    >${name}${folder === undefined ? nothing : html` <span class="dim">${parentOf(path).slice(folder.length)}</span>`}</a>`

/** @param {Entry} entry @param {RowState} state */
const checkOf = ({ name }, { isChosen, choose }) =>
  mayEdit('files')
    ? html`<input type="checkbox" tabindex="-1" aria-label="Select ${name}" .checked=${isChosen} @click=${(/** @type {MouseEvent} */ event) => choose(event.shiftKey)} />`
    : nothing

/**
 * The address of an entry. A search stays while its results are looked at.
 * @param {Entry} entry
 * @param {string | undefined} folder of the search
 * @param {URLSearchParams} query
 */
export function hrefOf({ path }, folder, query) {
  const same = Object.fromEntries(query)
  if (path.endsWith('/')) return hrefToPath(path, { view: same.view ?? '' })
  if (folder === undefined) return hrefToPath(path, { ...same, file: '' })
  return hrefToPath(folder, { ...same, file: path })
}

/** @param {Entry} entry */
const iconOf = (entry) =>
  'sha256' in entry && entry.public === false
    ? html`${icon('lock')}<span class="sr-only">private</span>`
    : icon(!('sha256' in entry) ? 'folder' : entry.category === 'image' ? 'image' : 'file')
