import { formatTime } from '../ui/format.js'

/**
 * What is wrong with the registrar, and what to do. Pure.
 * @typedef {{ title: string, text: string, tone: 'bad' | 'warn' }} Advice
 */

const wait = 'If it lasts, look at the registrar’s status page.'

/** @type {Record<string, [title: string, text: string]>} by the code of the last failure */
const advices = {
  registrar_auth: [
    'The registrar refuses the account, the key or the address',
    'Log in at the registrar and check API access: it must be on, the API key must be the one in REGISTRAR_API_KEY, and the address ADDRESS must be whitelisted. It must also be the value of REGISTRAR_CLIENT_IP.',
  ],
  registrar_timeout: [
    'The registrar does not answer in time',
    `Reads are answered from the cache where possible. ${wait}`,
  ],
  registrar_unreachable: [
    'The registrar cannot be reached',
    'Check the network of the service, its DNS and firewall, and REGISTRAR_URL.',
  ],
  registrar_busy: [
    'The registrar’s calls are used up',
    'Changes wait for their turn. Nothing to do, unless other programs use the same account.',
  ],
  registrar_bad_answer: ['The registrar sends damaged answers', `Nothing is written on such an answer. ${wait}`],
  registrar_error: ['The registrar reports an error of its own', `The service tries again by itself. ${wait}`],
}

/** @param {Api.RegistrarState} state @param {Api.Health} health @returns {Advice | undefined} undefined: all is well */
export function adviceFor(state, { status }) {
  const { last_failure: failure, last_success_at: success, client_ip: address } = state
  if (failure && !(success && success > failure.at)) {
    const [title, text] = advices[failure.code] ?? [
      'The last call to the registrar failed',
      `Its code is ${failure.code}. The log of the service has the details.`,
    ]
    const isBad = state.breaker === 'open' || failure.code === 'registrar_auth'
    return { title, text: text.replace('ADDRESS', address), tone: isBad ? 'bad' : 'warn' }
  }
  if (status === 'unavailable') {
    const text = 'Its database or its disk fails: see its log.'
    return { title: 'The service cannot work', text, tone: 'bad' }
  }
  const isEmpty = state.budget.find(({ left }) => left === 0)
  if (!isEmpty) return undefined
  const next = isEmpty.next_free_at ? ` The next is free ${formatTime(isEmpty.next_free_at)}.` : ''
  const title = `No calls left this ${isEmpty.window}`
  return { title, text: `Changes wait for their turn.${next}`, tone: 'warn' }
}
