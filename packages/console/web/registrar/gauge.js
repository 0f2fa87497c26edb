import { svg } from '../core/html.js'

const radius = 44
const length = Math.PI * radius

/**
 * A half-round gauge. The arc's length is a presentation attribute, which the page's policy allows.
 * @param {{ value: number, limit: number, label: string }} figure
 */
export function gauge({ value, limit, label }) {
  const fraction = limit > 0 ? Math.max(0, Math.min(1, value / limit)) : 0
  const tone = fraction < 0.1 ? 'bad' : fraction < 0.3 ? 'warn' : 'good'
  return svg`
    <svg class="gauge ${tone}" viewBox="0 0 104 60" role="img" aria-label=${label}>
      <path class="gauge-track" d="M8 54a44 44 0 0 1 88 0" />
      <path class="gauge-value" d="M8 54a44 44 0 0 1 88 0" stroke-dasharray="${fraction * length} ${length}" />
    </svg>`
}
