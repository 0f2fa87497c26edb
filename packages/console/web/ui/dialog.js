import { html, render } from '../core/html.js'
import { icon } from './icons.js'
import { errorNotice } from './states.js'

/**
 * Opens a modal dialog. Esc and the close button resolve with undefined; focus returns to where it was.
 * `draw` is called for each rendering with `close(result)` and `update()`.
 * @template Result
 * @param {{ title: string, className?: string, isLocked?: () => boolean,
 *   draw: (dialog: { close: (result?: Result) => void, update: () => void }) => unknown }} options
 *   `isLocked`: while true, Esc does not close
 * @returns {Promise<Result | undefined>}
 */
export function openDialog({ title, className = '', isLocked = () => false, draw }) {
  const dialog = document.createElement('dialog')
  dialog.className = `dialog ${className}`
  dialog.setAttribute('aria-label', title)
  /** @type {PromiseWithResolvers<Result | undefined>} */
  const { promise, resolve } = Promise.withResolvers()
  const opener = document.activeElement
  /** @param {Result} [result] */
  const close = (result) => {
    resolve(result)
    dialog.close()
  }
  const update = () => {
    render(
      html`
        <header class="dialog-header">
          <h2>${title}</h2>
          <button class="icon-button" aria-label="Close" @click=${() => isLocked() || close()}>${icon('close')}</button>
        </header>
        ${draw({ close, update })}`,
      dialog,
    )
  }
  dialog.addEventListener('cancel', (event) => {
    if (isLocked()) event.preventDefault()
  })
  dialog.addEventListener('close', () => {
    resolve(undefined)
    dialog.remove()
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
  })
  document.body.append(dialog)
  update()
  dialog.showModal()
  /** @type {HTMLElement | null} */
  const first = dialog.querySelector('[autofocus], input, select, textarea, .primary')
  first?.focus()
  return promise
}

/**
 * Asks for confirmation and runs `action`; a failure stays in the dialog, so that it can be tried again.
 * @param {{ title: string, body: unknown, confirm: string, danger?: boolean, action: () => Promise<unknown> }} options
 * @returns {Promise<boolean>} whether it was done
 */
export async function confirmDialog({ title, body, confirm, danger = false, action }) {
  let isBusy = false
  /** @type {unknown} */
  let error
  const done = await openDialog({
    title,
    isLocked: () => isBusy,
    draw: ({ close, update }) => {
      const run = async () => {
        isBusy = true
        error = undefined
        update()
        try {
          await action()
          close(true)
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      return html`
        <div class="dialog-body">${body} ${errorNotice(error)}</div>
        <footer class="dialog-footer">
          <button class="button" ?autofocus=${danger} @click=${() => close()}>Cancel</button>
          <button class="button ${danger ? 'danger' : 'primary'}" ?autofocus=${!danger} ?disabled=${isBusy} @click=${run}>
            ${isBusy ? 'Working…' : confirm}
          </button>
        </footer>`
    },
  })
  return done === true
}
