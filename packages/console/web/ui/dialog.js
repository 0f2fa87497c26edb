import { explain } from '../api/transport.js'
import { overlays } from '../core/router.js'
import { Attempt, focusOn, html, nothing, refocus, render } from '../core/view.js'
import { errorNotice, iconButton, toast } from './states.js'

/**
 * Opens a modal dialog. Esc, Back and the close button resolve with undefined, and ask before typed text is lost; focus
 * returns to where it was.
 * `draw` is called for each rendering with `close(result)` and `update()`.
 * @template Result
 * @param {{ title: string, className?: string, isLocked?: () => boolean,
 *   draw: (dialog: { close: (result?: Result) => void, update: () => void }) => unknown }} options
 *   `isLocked`: while true, Esc does not close
 */
export function openDialog({ title, className = '', isLocked = () => false, draw }) {
  const dialog = document.createElement('dialog')
  dialog.className = `dialog ${className}`
  dialog.tabIndex = -1 // It has the focus until something in it can.
  dialog.setAttribute('aria-label', title)
  /** @type {PromiseWithResolvers<Result | undefined>} */
  const { promise, resolve } = Promise.withResolvers()
  /** @param {Result} [result] */
  const close = (result) => {
    resolve(result)
    dialog.close() // The browser gives the focus back.
  }
  let isTyped = false
  dialog.addEventListener('input', ({ target }) => {
    if (target instanceof HTMLTextAreaElement) isTyped = target.value.trim() !== ''
  })
  const leave = () => void (isLocked() || (isTyped ? discard() : close()))
  const discard = async () => {
    const words = { title: 'Discard what you typed?', confirm: 'Discard', className: 'small', danger: true }
    if (await confirmDialog({ ...words, body: nothing, action: async () => true })) close()
  }
  const focusNext = () => focusOn(dialog, '[autofocus], input, select, textarea, .primary:not(:disabled)')
  const update = () => {
    render(
      html`
        <header class="dialog-header">
          <h2>${title}</h2>
          ${iconButton('close', 'Close', leave)}
        </header>
        ${draw({ close, update })}`,
      dialog,
    )
    // The next step has the focus once it can be taken.
    if (dialog.open && !dialog.querySelector(':focus')) focusNext()
  }
  dialog.addEventListener('cancel', (event) => {
    if (event.target !== dialog) return // A choice of files was left.
    event.preventDefault()
    leave()
  })
  dialog.addEventListener('close', () => {
    resolve(undefined)
    overlays.delete(leave)
    document.body.append(...dialog.querySelectorAll('.toasts'))
    dialog.remove()
    refocus() // What opened it may be gone.
  })
  document.body.append(dialog)
  update()
  dialog.showModal()
  overlays.add(leave)
  if (!focusNext()) dialog.focus()
  return promise
}

/**
 * Asks before something ends for good.
 * @param {'Delete' | 'Remove' | 'Revoke'} verb
 * @param {string} name
 * @param {unknown} words what comes of it
 * @param {() => Promise<unknown>} action
 */
export const removalDialog = (verb, name, words, action) =>
  confirmDialog({
    title: `${verb} ${name}?`,
    body: html`<p>${words}</p>`,
    confirm: verb,
    danger: true,
    action,
    said: `${name} ${verb.toLowerCase()}d`,
  })

/**
 * A dialog that does one thing: a form, or a question. A failure of `action` stays in it, so that it can be tried again.
 * @param {{ title: string, body: unknown | ((update: () => void, attempt: Attempt) => unknown), confirm: string,
 *   className?: string, danger?: boolean, isReady?: () => boolean,
 *   prepare?: () => Promise<unknown>, action: () => Promise<unknown>, other?: [label: string, action: () => Promise<unknown>],
 *   ways?: () => Record<string, [label: string, decide: () => unknown] | undefined>, done?: () => unknown, said?: unknown }} options `body`: a
 *   function where it changes; `prepare`: done first, while the dialog can be left; `action`: false where there is more to
 *   decide; `other`: what can be done instead; `ways`: what lets it pass, by the code of the problem; `said`: in passing, after
 *   it was done; `done`: shown after it was done, as what is shown only once
 * @returns {Promise<boolean>} whether it was done
 */
export async function confirmDialog(options) {
  const { title, body, className, danger = false, other } = options
  let isDone = false
  let isPreparing = false
  let redraw = () => {}
  const attempt = new Attempt(() => redraw())
  const isLocked = () => attempt.isBusy && !isPreparing
  await openDialog({
    title,
    className,
    isLocked,
    draw: ({ close, update }) => {
      const run = (action = options.action) =>
        attempt.run(async () => {
          isDone = (await action()) !== false
          if (isDone && !options.done) close()
        })
      if (redraw !== update && options.prepare) {
        isPreparing = true
        void attempt.run(options.prepare).then(() => (isPreparing = false))
      }
      redraw = update
      if (isDone && options.done)
        return html`
          <div class="dialog-body">${options.done()}</div>
          <footer class="dialog-footer"><button class="button" @click=${() => close()}>Done</button></footer>`
      const way = attempt.error ? options.ways?.()[explain(attempt.error).code] : undefined
      const goOn = () => {
        way?.[1]()
        void run()
      }
      const submit = (/** @type {Event} */ event) => {
        event.preventDefault()
        void run()
      }
      return html`
        <form class="dialog-form" @submit=${submit}>
          <div class="dialog-body" aria-live=${options.prepare ? 'polite' : 'off'}>
            ${typeof body === 'function' ? body(update, attempt) : body} ${errorNotice(nameField(attempt.error), way && [way[0], goOn])}
          </div>
          <footer class="dialog-footer">
            <button class="button" type="button" ?autofocus=${danger} ?disabled=${isLocked()} @click=${() => close()}>Cancel</button>
            ${other ? html`<button class="button danger" type="button" ?disabled=${attempt.isBusy} @click=${() => run(other[1])}>${other[0]}</button>` : nothing}
            <button class="button ${danger ? 'danger' : 'primary'}" ?disabled=${attempt.isBusy || options.isReady?.() === false}>
              ${attempt.isBusy ? 'Working…' : options.confirm}
            </button>
          </footer>
        </form>`
    },
  })
  if (isDone && options.said) toast(options.said)
  return isDone
}

/** A refused field in words: "/expires_in: must be" → "Expires in must be". @param {unknown} error */
function nameField(error) {
  if (!(error instanceof Error)) return error
  error.message = error.message.replace(
    /^\/([a-z])([a-z_]*): /,
    (_, first, rest) => `${first.toUpperCase()}${rest.replaceAll('_', ' ')} `,
  )
  return error
}
