import { formatTime } from '../ui/format.js'

/**
 * What is wrong with the registrar, and what to do. Pure.
 * @import { Health, RegistrarState } from '../api/schema.d.ts'
 * @typedef {{ title: string, text: string, tone: 'bad' | 'warn' }} Advice
 */

/** @type {Record<string, { title: string, text: (address: string) => string }>} */
const advices = {
  registrar_auth: {
    title: 'The registrar refuses the account, the key or the address',
    text: (address) =>
      `Log in at the registrar and check API access: it must be on, the API key must be the one in REGISTRAR_API_KEY, and the address ${address} must be whitelisted. It must also be the value of REGISTRAR_CLIENT_IP.`,
  },
  registrar_timeout: {
    title: 'The registrar does not answer in time',
    text: () =>
      'Reads are answered from the cache where possible. If it lasts, look at the registrar’s status page.',
  },
  registrar_unreachable: {
    title: 'The registrar cannot be reached',
    text: () => 'Check the network of the service, its DNS and firewall, and REGISTRAR_URL.',
  },
  registrar_busy: {
    title: 'The registrar’s calls are used up',
    text: () =>
      'Changes wait for their turn. Nothing to do, unless other programs use the same account.',
  },
  registrar_bad_answer: {
    title: 'The registrar sends damaged answers',
    text: () =>
      'Nothing is written on such an answer. If it lasts, look at the registrar’s status page.',
  },
  registrar_error: {
    title: 'The registrar reports an error of its own',
    text: () =>
      'The service tries again by itself. If it lasts, look at the registrar’s status page.',
  },
}

/**
 * @param {RegistrarState} state
 * @param {Health} health
 * @returns {Advice | undefined} undefined: all is well
 */
export function adviceFor(state, health) {
  const failure = state.last_failure
  const isOver = !failure || (state.last_success_at !== null && state.last_success_at > failure.at)
  const isEmpty = state.budget.find(({ left }) => left === 0)
  if (!isOver && failure) {
    const { title, text } = advices[failure.code] ?? {
      title: 'The last call to the registrar failed',
      text: () => `Its code is ${failure.code}. The log of the service has the details.`,
    }
    return {
      title,
      text: text(state.client_ip),
      tone: state.breaker === 'open' || failure.code === 'registrar_auth' ? 'bad' : 'warn',
    }
  }
  if (health.status === 'unavailable') {
    return {
      title: 'The service cannot work',
      text: 'Its database or its disk fails: see its log.',
      tone: 'bad',
    }
  }
  if (!isEmpty) return undefined
  const next = isEmpty.next_free_at ? ` The next is free ${formatTime(isEmpty.next_free_at)}.` : ''
  return {
    title: `No calls left this ${isEmpty.window}`,
    text: `Changes wait for their turn.${next}`,
    tone: 'warn',
  }
}
