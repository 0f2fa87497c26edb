import { overlays } from '../core/router.js'
import { Attempt, html, render } from '../core/view.js'
import { errorNotice, icon, toast } from './states.js'

/**
 * Opens a modal dialog. Esc, Back and the close button resolve with undefined; focus returns to where it was.
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
    overlays.delete(leave)
    dialog.close()
  }
  const leave = () => void (isLocked() || close())
  const update = () => {
    render(
      html`
        <header class="dialog-header">
          <h2>${title}</h2>
          <button class="icon-button" aria-label="Close" @click=${leave}>${icon('close')}</button>
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
    overlays.delete(leave)
    dialog.remove()
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
  })
  document.body.append(dialog)
  update()
  dialog.showModal()
  overlays.add(leave)
  /** @type {HTMLElement | null} */
  const first = dialog.querySelector('[autofocus], input, select, textarea, .primary')
  first?.focus()
  return promise
}

/**
 * A dialog that does one thing: a form, or a question. A failure of `action` stays in it, so that it can be tried again.
 * @param {{ title: string, body: unknown | ((update: () => void) => unknown), confirm: string | (() => string),
 *   busy?: string,
 *   className?: string, danger?: boolean, isReady?: () => boolean, action: () => Promise<unknown>,
 *   ways?: Record<string, [label: string, decide: () => void]>, done?: () => unknown, said?: unknown }} options `body`: a function where it
 *   has fields; `action`: false where there is more to decide; `ways`: what lets it pass, by the code of the problem;
 *   `said`: in passing, after it was done; `done`: shown after it was done, as what is shown only once
 * @returns {Promise<boolean>} whether it was done
 */
export async function confirmDialog(options) {
  const { title, body, confirm, busy = 'Working…', className, danger = false } = options
  let isDone = false
  let redraw = () => {}
  const attempt = new Attempt(() => redraw())
  await openDialog({
    title,
    className,
    isLocked: () => attempt.isBusy,
    draw: ({ close, update }) => {
      redraw = update
      const act = (/** @type {Event | void} */ event) => {
        event?.preventDefault()
        return attempt.run(async () => {
          isDone = (await options.action()) !== false
          if (isDone && !options.done) close()
        })
      }
      if (isDone && options.done)
        return html`
          <div class="dialog-body">${options.done()}</div>
          <footer class="dialog-footer"><button class="button" @click=${() => close()}>Done</button></footer>`
      /** @type {NonNullable<typeof options.ways>} */
      const ways = {}
      for (const [code, [label, decide]] of Object.entries(options.ways ?? {})) {
        const goOn = () => {
          decide()
          void act()
        }
        ways[code] = [label, goOn]
      }
      return html`
        <form class="dialog-form" @submit=${act}>
          <div class="dialog-body">${typeof body === 'function' ? body(update) : body} ${errorNotice(attempt.error, ways)}</div>
          <footer class="dialog-footer">
            <button class="button" type="button" ?autofocus=${danger} @click=${() => close()}>Cancel</button>
            <button class="button ${danger ? 'danger' : 'primary'}" ?disabled=${attempt.isBusy || options.isReady?.() === false}>
              ${attempt.isBusy ? busy : typeof confirm === 'function' ? confirm() : confirm}
            </button>
          </footer>
        </form>`
    },
  })
  if (isDone && options.said) toast(options.said)
  return isDone
}
