import { get } from '../api/client.js'
import { html, nothing, Resource, svg, View } from '../core/view.js'
import { formatAge, formatNumber, formatTime, formatTtl } from '../ui/format.js'
import { notice, page, show } from '../ui/states.js'
import { bar } from '../ui/table.js'
import { adviceFor } from './advice.js'

/** The account at the registrar: calls left in each window, and what is wrong when something is. */
class RegistrarView extends View {
  #state = new Resource(this, async (signal) => {
    const [state, health] = await Promise.all([
      get('domains', '/api/registrar', { signal }),
      get('domains', '/health', { signal }),
    ])
    return { state, health }
  })

  pollMs = 5000

  template() {
    const content = show(this.#state, ({ state, health }) => panels(state, health), 4)
    return page('Registrar', '', content)
  }
}

/** @param {Api.RegistrarState} state @param {Api.Health} health */
function panels(state, health) {
  const advice = adviceFor(state, health)
  const { last_failure: failure } = state
  const name = health.checks.registrar?.registrar ?? state.registrar
  return html`
    ${
      advice
        ? notice(html`<p><strong>${advice.title}</strong></p><p>${advice.text}</p>`, advice.tone)
        : notice('The registrar answers. Nothing to do.', 'good')
    }
    <section class="panel" aria-labelledby="budget">
      <h2 id="budget">Calls left</h2>
      <p class="muted">The registrar limits calls. Writes may use all of them, readers at most half of each window.</p>
      <ul class="meters">${state.budget.map(meter)}</ul>
    </section>
    <section class="panel" aria-labelledby="calls">
      <h2 id="calls">Calls by hour</h2>
      ${chart(state.calls)}
    </section>
    <dl class="panel facts">
      <div><dt>Registrar</dt><dd>${name === 'sandbox' ? 'sandbox: nothing that is changed has an effect' : html`<code>${name}</code>`}</dd></div>
      <div><dt>Last success</dt><dd>${state.last_success_at ? formatAge(state.last_success_at) : 'none yet'}</dd></div>
      <div><dt>Last failure</dt><dd>${failure ? html`${formatAge(failure.at)} <code>${failure.code}</code>` : 'none'}</dd></div>
      <div><dt>Address to whitelist</dt><dd><code>${state.client_ip}</code></dd></div>
      <div><dt>Calls waiting</dt><dd>${formatNumber(state.calls_waiting)}</dd></div>
      <div><dt>List of domains</dt><dd>${describeList(state.domain_list)}</dd></div>
      <div><dt>Changes outside</dt><dd>${describeSweep(state.sweep)}</dd></div>
      <div><dt>Service</dt><dd>version ${health.version}, ${health.status}</dd></div>
    </dl>`
}

/** @param {Api.RegistrarState['budget'][number]} budget */
function meter({ window, limit, left, next_free_at: next }) {
  const fraction = left / limit
  const tone = fraction < 0.1 ? 'bad' : fraction < 0.3 ? 'warn' : 'good'
  return html`
    <li class="meter">
      <span><strong>${formatNumber(left)}</strong> of ${formatNumber(limit)} <span class="muted">this ${window}</span></span>
      ${bar(fraction, tone)}
      ${left === 0 && next ? html`<span class="note">next ${formatTime(next)}</span>` : nothing}
    </li>`
}

/** Bars of the calls of each hour, below them those of readers. @param {Api.RegistrarState['calls']} hours oldest first */
function chart(hours) {
  const most = Math.max(1, ...hours.map(({ calls }) => calls))
  const total = hours.reduce((sum, { calls }) => sum + calls, 0)
  const reads = hours.reduce((sum, each) => sum + each.reads, 0)
  const height = (/** @type {number} */ calls) => (60 * calls) / most
  return html`
    <p class="muted">${formatNumber(total)} calls, ${formatNumber(reads)} of them for readers; at most ${formatNumber(most)} in an hour</p>
    ${svg`
      <svg class="hours" viewBox="0 0 240 60" preserveAspectRatio="none" role="img" aria-label="Calls by hour, the last hour at the right">
        ${hours.map(
          ({ from, calls, reads: read }, at) => svg`
            <g transform="translate(${10 * (24 - hours.length + at) + 1})">
              <title>${formatTime(from)}: ${calls} calls, ${read} for readers</title>
              <rect class="all" y=${60 - height(calls)} width="8" height=${height(calls)} />
              <rect class="reads" y=${60 - height(read)} width="8" height=${height(read)} />
            </g>`,
        )}
      </svg>`}
    <p class="legend note"><span class="key all"></span> writes <span class="key reads"></span> readers</p>`
}

/** @param {Api.RegistrarState['domain_list']} list */
function describeList({ domains, read_at: at, is_reading: isReading, pages_read: done, pages }) {
  const progress = isReading ? `, reading page ${done + 1}${pages ? ` of ${pages}` : ''}` : ''
  if (domains === null || !at) return `not read yet${progress}`
  return `${formatNumber(domains)} domains, read ${formatAge(at)}${progress}`
}

/** @param {Api.RegistrarState['sweep']} sweep */
function describeSweep({ interval_s: interval, domains, seen }) {
  if (interval === 0) return 'not looked for'
  return `${formatNumber(seen)} of ${formatNumber(domains)} domains read in the last ${formatTtl(interval)}`
}

customElements.define('registrar-view', RegistrarView)
