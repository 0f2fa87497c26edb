import { html, View } from '../core/view.js'

const spareRows = 8

/**
 * What is listed: `header` is a row's template, as `draw` returns; `onRange` is called with the rows that are about to be shown.
 * @typedef {{ label: string, header: unknown, count: number, draw: (index: number) => unknown,
 *   onRange: (first: number, last: number) => void }} Rows
 */

/**
 * A scrolling grid of which only the visible rows exist, for lists of any length. Rows have one height, that of the
 * style sheet's `--row`. Up, Down, Page Up, Page Down, Home and End move; the row's `[data-row]` gets the focus.
 */
class VirtualList extends View {
  /** @type {Rows} */
  #rows = { label: '', header: '', count: 0, draw: () => '', onRange: () => {} }
  #first = 0
  #last = 30
  #rowHeight = 40
  /** @type {number | undefined} the row to focus after the next rendering */
  #focused

  /** @param {Rows} rows */
  set rows(rows) {
    this.#rows = rows
    this.update()
  }

  opened() {
    const { signal } = this
    this.#rowHeight = Number.parseFloat(getComputedStyle(this).getPropertyValue('--row')) || 40
    this.addEventListener('scroll', () => this.#measure(), { signal, passive: true })
    this.addEventListener('keydown', (event) => this.#move(event), { signal })
    const observer = new ResizeObserver(() => this.#measure())
    observer.observe(this)
    signal.addEventListener('abort', () => observer.disconnect())
  }

  #measure() {
    const first = Math.max(0, Math.floor(this.scrollTop / this.#rowHeight) - spareRows)
    const last = Math.ceil((this.scrollTop + this.clientHeight) / this.#rowHeight) + spareRows
    if (first === this.#first && last === this.#last) return
    this.#first = first
    this.#last = last
    this.update()
  }

  template() {
    const { label, header, count, draw, onRange } = this.#rows
    const last = Math.min(this.#last, count)
    const length = Math.max(0, last - this.#first)
    const indexes = Array.from({ length }, (_, at) => this.#first + at)
    // A row that has been loaded takes the place of the one that had the focus.
    const active = document.activeElement
    if (active?.matches('[data-row]') && this.contains(active)) this.#focused ??= indexOf(active)
    onRange(this.#first, last)
    return html`
      <div role="grid" aria-label=${label} aria-rowcount=${count + 1}>
        <div class="virtual-header" role="row" aria-rowindex="1">${header}</div>
        <div class="virtual-space" role="presentation">
          <div class="virtual-slice" role="presentation">
            ${indexes.map(
              (index) => html`<div class="virtual-row" role="row" aria-rowindex=${index + 2}>${draw(index)}</div>`,
            )}
          </div>
        </div>
      </div>`
  }

  rendered() {
    /** @type {NodeListOf<HTMLElement>} */
    const [space, slice] = this.querySelectorAll('.virtual-space, .virtual-slice')
    space?.style.setProperty('height', `${this.#rows.count * this.#rowHeight}px`)
    slice?.style.setProperty('transform', `translateY(${this.#first * this.#rowHeight}px)`)
    if (this.#focused === undefined) return
    /** @type {HTMLElement | null} */
    const row = this.querySelector(`[aria-rowindex="${this.#focused + 2}"] [data-row]`)
    if (row !== document.activeElement) row?.focus({ preventScroll: true })
    this.#focused = undefined
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const at = indexOf(/** @type {HTMLElement} */ (event.target))
    if (at === undefined) return
    const page = Math.max(1, Math.floor(this.clientHeight / this.#rowHeight) - 2)
    const steps = new Map([
      ['ArrowDown', at + 1],
      ['ArrowUp', at - 1],
      ['PageDown', at + page],
      ['PageUp', at - page],
      ['Home', 0],
      ['End', this.#rows.count - 1],
    ])
    const next = steps.get(event.key)
    if (next === undefined) return
    event.preventDefault()
    this.focusRow(Math.max(0, Math.min(this.#rows.count - 1, next)))
  }

  /** Scrolls a row into sight and focuses it. @param {number} index */
  focusRow(index) {
    const top = index * this.#rowHeight
    const bottom = top + 2 * this.#rowHeight // The header covers the height of a row.
    if (top < this.scrollTop) this.scrollTo(0, top)
    else if (bottom > this.scrollTop + this.clientHeight) this.scrollTo(0, bottom - this.clientHeight)
    this.#focused = index
    this.#measure()
    this.update()
  }
}

/** The index of the row that an element is in. @param {Element} element */
function indexOf(element) {
  const row = element.closest('.virtual-row')
  return row ? Number(row.getAttribute('aria-rowindex')) - 2 : undefined
}

customElements.define('virtual-list', VirtualList)
