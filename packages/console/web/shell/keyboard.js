import { html } from '../core/html.js'
import { openDialog } from '../ui/dialog.js'

const shortcuts = [
  ['/', 'Search in this view'],
  ['↑ ↓', 'Move between rows'],
  ['Enter', 'Open the row'],
  ['Space', 'Select the row (files)'],
  ['n', 'Add a record, upload files, make a new one'],
  ['r', 'Review the changes (domain)'],
  ['Esc', 'Close, or empty the search'],
  ['?', 'Show these keys'],
]

/** Keys that work everywhere, but not while somebody types or a dialog is open. @param {AbortSignal} signal */
export function listenForKeys(signal) {
  addEventListener(
    'keydown',
    (event) => {
      const target = /** @type {HTMLElement} */ (event.target)
      if (event.key === 'Escape') leaveSearch(target)
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (target.matches?.('input:not([type=checkbox]), select, textarea')) return
      if (document.querySelector('dialog[open]')) return
      if (act(event.key)) event.preventDefault()
    },
    { signal },
  )
}

/** @param {string} key */
function act(key) {
  if (key === '?') void openShortcuts()
  else if (key === '/') return focusOn('main [data-search]')
  else if (key === 'n' || key === 'r') return press(`main [data-key="${key}"]`)
  else if (key === 'ArrowDown' && !document.activeElement?.closest('main *'))
    return focusOn('main [data-row]')
  else return false
  return true
}

/** @param {string} selector */
function focusOn(selector) {
  /** @type {HTMLElement | null} */
  const element = document.querySelector(selector)
  element?.focus()
  return element !== null
}

/** @param {string} selector */
function press(selector) {
  /** @type {HTMLButtonElement | null} */
  const button = document.querySelector(selector)
  button?.click()
  return button !== null
}

/** @param {HTMLElement} target */
function leaveSearch(target) {
  if (!(target instanceof HTMLInputElement) || target.type !== 'search') return
  if (target.value === '') target.blur()
  target.value = ''
  target.dispatchEvent(new Event('input'))
}

/** The list of keys, in a dialog. */
export function openShortcuts() {
  return openDialog({
    title: 'Keyboard',
    className: 'small',
    draw: () => html`
      <dl class="dialog-body keys">
        ${shortcuts.map(([key, meaning]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${meaning}</dd></div>`)}
      </dl>`,
  })
}
