import { splitList } from '../ui/format.js'

/**
 * What tokens are made for: each purpose asks for little, and limits the token to what it needs. Pure.
 * @typedef {{ title: string, hint: string, service: Api.ServiceName, asks: ('domain' | 'names')[], role?: Api.TokenInput['role'],
 *   limit?: (answers: Answers) => Partial<Api.TokenInput>, settings: (made: MadeToken) => [label: string, value: string][] }} Purpose
 * @typedef {{ domain: string, names: string }} Answers
 * @typedef {{ token: string, url: string, answers: Answers }} MadeToken
 */

/** @type {Purpose['settings']} */
const bearer = ({ token }) => [['Header', `Authorization: Bearer ${token}`]]

/** @param {Api.ServiceName} service @param {string} title @param {string} hint @returns {Purpose} */
const reader = (service, title, hint) => ({
  title,
  hint,
  service,
  asks: [],
  role: 'viewer',
  settings: bearer,
})

/** @type {Record<string, Purpose>} */
export const purposes = {
  router: {
    title: 'Router or dynamic DNS client',
    hint: 'Keeps a name pointed at your home address. May change only the address records of that name.',
    service: 'domains',
    asks: ['domain', 'names'],
    limit: ({ domain, names }) => ({
      domains: [domain],
      records: splitList(names).map((name) => ({ name, types: ['A', 'AAAA'] })),
    }),
    settings: ({ token, url, answers }) => [
      ['Service', 'DynDNS2 (custom)'],
      ['Server', new URL(url).host],
      ['Update URL', `${url}/nic/update?hostname=${fullNames(answers)}&myip=<ipaddr>`],
      ['Host name', fullNames(answers)],
      ['User name', 'any'],
      ['Password', token],
    ],
  },
  certificates: {
    title: 'Certificates (ACME)',
    hint: 'For lego, Traefik, Caddy, acme.sh or cert-manager. May change only challenge records.',
    service: 'domains',
    asks: ['domain'],
    limit: ({ domain }) => ({
      domains: [domain],
      records: ['_acme-challenge', '_acme-challenge.*'].map((name) => ({ name, types: ['TXT'] })),
    }),
    settings: ({ token, url }) => [
      ['HTTPREQ_ENDPOINT', `${url}/integrations/acme`],
      ['HTTPREQ_USERNAME', 'any'],
      ['HTTPREQ_PASSWORD', token],
    ],
  },
  records: {
    title: 'Program that changes records',
    hint: 'May do what you may, in the domain that you name or in all of yours.',
    service: 'domains',
    asks: ['domain'],
    role: 'editor',
    limit: ({ domain }) => (domain ? { domains: [domain] } : {}),
    settings: bearer,
  },
  readDomains: reader('domains', 'Program that only reads domains', 'For monitoring and backups.'),
  upload: {
    title: 'Program that uploads files',
    hint: 'For deployments and scripts. May store, move and delete files.',
    service: 'files',
    asks: [],
    role: 'editor',
    settings: ({ token, url }) => {
      const header = `-H 'Authorization: Bearer ${token}'`
      return [['Example', `curl -T page.html ${header} ${url}/api/files/site/page.html`]]
    },
  },
  readFiles: reader('files', 'Program that only lists files', 'For monitoring and statistics.'),
}

/** The body of the request. @param {Purpose} purpose @param {Answers & { name: string, days: string }} form @returns {Api.TokenInput} */
export const toTokenInput = ({ role, limit }, { name, days, ...answers }) => ({
  name,
  expires_in: Number(days) * 86_400,
  ...(role ? { role } : {}),
  ...limit?.(answers),
})

/** @param {Answers} answers */
const fullNames = ({ domain, names }) =>
  splitList(names)
    .map((name) => (name === '@' ? domain : `${name}.${domain}`))
    .join(',')
