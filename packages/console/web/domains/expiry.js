import { html } from '../core/html.js'
import { daysUntil, formatDate } from '../ui/format.js'

const fullBarDays = 365

/**
 * The days left of a registration as a bar with its date: a full bar is a year or more.
 * @param {string | null} expiresOn
 * @param {boolean | null} [isExpired]
 */
export function expiryBar(expiresOn, isExpired = false) {
  if (!expiresOn) return html`<span class="muted">unknown</span>`
  const days = isExpired ? 0 : Math.max(0, daysUntil(expiresOn))
  const tone = days <= 30 ? 'bad' : days <= 90 ? 'warn' : 'good'
  const words =
    isExpired || days === 0 ? 'expired' : days === 1 ? '1 day left' : `${days} days left`
  return html`
    <span class="expiry ${tone}" title=${formatDate(expiresOn)}>
      <meter-bar tone=${tone} .fraction=${Math.min(1, days / fullBarDays)}></meter-bar>
      <span class="expiry-words">${words}</span>
      <span class="expiry-date">${formatDate(expiresOn)}</span>
    </span>`
}
