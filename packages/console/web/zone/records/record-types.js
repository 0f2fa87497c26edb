/**
 * What the form knows of each record type: what it is for, and what its value looks like. `value` is the label of the
 * value where the title is not.
 * @typedef {{ title: string, value?: string, placeholder: string, hint: string }} RecordType
 */
const server = 'Points the name at a server.'
const alias = { value: 'Target name', placeholder: 'www.example.net' }
const mail = { value: 'IPv4 address', placeholder: '192.0.2.25' }
const redirect = { value: 'Web address', placeholder: 'https://example.net/' }

/** @satisfies {Record<Api.RecordTypeName, RecordType>} */
const writable = {
  A: { title: 'IPv4 address', placeholder: '192.0.2.10', hint: server },
  AAAA: { title: 'IPv6 address', placeholder: '2001:db8::10', hint: server },
  CNAME: { ...alias, title: 'Alias of another name', hint: 'Alone at its name, and not at @.' },
  MX: {
    title: 'Mail server',
    placeholder: 'mx1.example.net',
    hint: 'Receives mail for this name. The server with the lowest preference is tried first.',
  },
  TXT: {
    title: 'Text',
    placeholder: 'v=spf1 include:example.net -all',
    hint: 'Kept exactly as you write it, without surrounding quotes.',
  },
  CAA: {
    title: 'Certificate authorities',
    value: 'Flags, tag and value',
    placeholder: '0 issue "letsencrypt.org"',
    hint: 'Which certificate authorities may issue for this name.',
  },
  ALIAS: { ...alias, title: 'Alias at the domain itself', hint: 'Not beside A, AAAA or CNAME.' },
  NS: {
    title: 'Nameserver of a subdomain',
    value: 'Nameserver',
    placeholder: 'ns1.example.net',
    hint: 'Hands a subdomain to other nameservers. Not at @.',
  },
  URL: { ...redirect, title: 'Redirect (temporary)', hint: 'Answered with a 302 redirect.' },
  URL301: { ...redirect, title: 'Redirect (permanent)', hint: 'Answered with a 301 redirect.' },
  FRAME: { ...redirect, title: 'Redirect in a frame', hint: 'Answered with a page in a frame.' },
  MXE: { ...mail, title: 'Mail to an address', hint: 'Only at @, one per zone, not beside MX.' },
}

/** @type {Record<string, RecordType>} */
export const recordTypes = writable

/** What mail handling means, by the values of `email_type`. */
export const emailTypes = {
  NONE: 'No mail',
  MX: 'Own mail servers (MX)',
  MXE: 'Mail to an address (MXE)',
  FWD: 'Forwarding by the registrar',
  OX: 'Private Email',
  GMAIL: 'Google Workspace',
}

/** In seconds; the first one is what the registrar calls automatic. */
export const ttls = [1799, 60, 300, 1200, 1800, 3600, 14_400, 43_200]
