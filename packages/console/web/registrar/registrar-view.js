import { getHealth, getRegistrar } from '../api/domain-service.js'
import { html, nothing } from '../core/html.js'
import { poll } from '../core/poll.js'
import { Resource, View } from '../core/view.js'
import { formatAge, formatNumber, formatTime } from '../ui/format.js'
import { notice, show } from '../ui/states.js'
import { adviceFor } from './advice.js'
import { gauge } from './gauge.js'

/** @import { Health, RegistrarState } from '../api/schema.d.ts' */

/** The account at the registrar: calls left in each window, and what is wrong when something is. */
class RegistrarView extends View {
  #state = new Resource(this, async (signal) => {
    const [state, health] = await Promise.all([getRegistrar(signal), getHealth(signal)])
    return { state, health }
  })

  opened() {
    poll(
      () => this.#state.reload(),
      () => 5000,
      this.signal,
    )
  }

  template() {
    return html`
      <div class="view">
        <header class="view-header"><h1>Registrar</h1></header>
        ${show(this.#state, ({ state, health }) => this.#panel(state, health), 4)}
      </div>`
  }

  /** @param {RegistrarState} state @param {Health} health */
  #panel(state, health) {
    const advice = adviceFor(state, health)
    return html`
      ${
        advice
          ? notice(html`<p><strong>${advice.title}</strong></p><p>${advice.text}</p>`, advice.tone)
          : notice('The registrar answers. Nothing to do.', 'good')
      }
      <section class="panel" aria-labelledby="budget">
        <h2 id="budget">Calls left</h2>
        <p class="muted">The registrar allows so many calls. At least half of each window is kept for writes.</p>
        <div class="gauges">
          ${state.budget.map(
            ({ window, limit, left, next_free_at: next }) => html`
              <figure class="gauge-card">
                ${gauge({ value: left, limit, label: `${left} of ${limit} calls left this ${window}` })}
                <figcaption>
                  <strong>${formatNumber(left)}</strong> of ${formatNumber(limit)}
                  <span class="muted">this ${window}</span>
                  ${left === 0 && next ? html`<span class="muted">next ${formatTime(next)}</span>` : nothing}
                </figcaption>
              </figure>`,
          )}
        </div>
      </section>
      <dl class="panel facts">
        <div><dt>Last success</dt><dd>${state.last_success_at ? formatAge(state.last_success_at) : 'none yet'}</dd></div>
        <div>
          <dt>Last failure</dt>
          <dd>${state.last_failure ? html`${formatAge(state.last_failure.at)} <code>${state.last_failure.code}</code>` : 'none'}</dd>
        </div>
        <div><dt>Address to whitelist</dt><dd><code>${state.client_ip}</code></dd></div>
        <div><dt>Calls waiting</dt><dd>${formatNumber(state.calls_waiting)}</dd></div>
        <div><dt>List of domains</dt><dd>${describeList(state.domain_list)}</dd></div>
        <div><dt>Service</dt><dd>version ${health.version}, ${health.status}</dd></div>
      </dl>`
  }
}

/** @param {RegistrarState['domain_list']} list */
function describeList({ domains, read_at: at, is_reading: isReading, pages_read: done, pages }) {
  const progress = isReading ? `, reading page ${done + 1}${pages ? ` of ${pages}` : ''}` : ''
  if (domains === null || !at) return `not read yet${progress}`
  return `${formatNumber(domains)} domains, read ${formatAge(at)}${progress}`
}

customElements.define('registrar-view', RegistrarView)
