import { explain } from '../api/problem.js'
import { html, render } from '../core/html.js'
import { icon } from './icons.js'

/** @typedef {{ text: unknown, tone: 'good' | 'bad', id: number }} Toast */

/** @type {Toast[]} */
let toasts = []
let lastId = 0
const region = document.createElement('div')
region.className = 'toasts'
region.setAttribute('role', 'status')
document.body.append(region)

/**
 * Shows a short message and announces it to screen readers. It leaves by itself, or when it is dismissed.
 * @param {unknown} text
 * @param {'good' | 'bad'} [tone]
 */
export function toast(text, tone = 'good') {
  lastId += 1
  const id = lastId
  toasts = [...toasts.slice(-2), { text, tone, id }]
  draw()
  setTimeout(() => dismiss(id), 6000)
}

/** Does something at once, and says why where it fails. @param {() => Promise<unknown>} task */
export async function attempt(task) {
  try {
    await task()
  } catch (error) {
    toast(explain(error).detail, 'bad')
  }
}

/** @param {number} id */
function dismiss(id) {
  toasts = toasts.filter((each) => each.id !== id)
  draw()
}

function draw() {
  render(
    toasts.map(
      ({ text, tone, id }) => html`
        <div class="toast ${tone}">
          ${icon(tone === 'good' ? 'check' : 'warning')}
          <span>${text}</span>
          <button class="icon-button" aria-label="Dismiss" @click=${() => dismiss(id)}>${icon('close')}</button>
        </div>`,
    ),
    region,
  )
}
