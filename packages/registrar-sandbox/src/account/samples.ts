import { type DomainSketch, dayOf, type HostSketch } from './domain.ts'

const dayMs = 86_400_000

/** Registration and expiry, as days before and after the start of the sandbox. */
type Term = [registered: number, left: number]

/** The domains of a new sandbox: one for each special case, and enough plain ones for several pages. */
export function makeSamples(now: number): DomainSketch[] {
  const dayAt = (days: number) => dayOf(now + days * dayMs)
  const plain = Array.from({ length: 32 }, (_, index) => plainSample(index))
  return [...special, ...plain].map(({ term: [registered, left], ...domain }) => ({
    ...domain,
    created: dayAt(-registered),
    expires: dayAt(left),
  }))
}

/** A domain with the records of a text, one a line: name, type, TTL, preference of an MX record, address. */
const sample = (name: string, term: Term, records: string, more: Omit<DomainSketch, 'name' | 'hosts'> = {}) => ({
  name,
  term,
  hosts: records.split('\n').flatMap((line) => toHost(line, name)),
  ...more,
})

function toHost(line: string, domain: string): HostSketch[] {
  const [, name, type = '', ttl, mxPref = '10', address] =
    /^(\S+) (\S+) (\d+) (?:(?<=MX \d+ )(\d+) )?(.*)$/.exec(line.trim()) ?? []
  if (!name || address === undefined) return []
  const host = { name, type, address: address.replace('DOMAIN', domain), ttl: Number(ttl) }
  // setHosts cannot express the dynamic-DNS flag: only the panel sets it.
  return [{ ...host, mxPref: Number(mxPref), isDdns: name === 'dome' }]
}

function plainSample(index: number) {
  const first = ['amber', 'birch', 'cedar', 'dune', 'ember', 'fern', 'gale', 'heron'][index % 8]
  const second = ['field', 'works', 'street', 'cabin'][Math.floor(index / 8)]
  const suffix = ['com', 'net', 'org', 'shop'][(index * 3) % 4]
  const records = `@ A 1800 192.0.2.${10 + index}\nwww CNAME 1800 DOMAIN.`
  return sample(`${first}${second}.${suffix}`, [40 + index * 37, 45 + index * 11], records, {
    emailType: index % 5 === 0 ? 'FWD' : 'NONE',
  })
}

/** The rows that the registrar puts into an empty zone. */
const parked = `
  www CNAME 1800 parkingpage.namecheap.com.
  @ URL 1800 http://www.DOMAIN/?from=@`

const shop = `
  @ A 1799 203.0.113.17
  @ AAAA 1799 2001:db8:7::17
  www CNAME 1800 alder-and-finch.com.
  @ MX 1800 10 mx1.mailhaven.example.
  @ MX 1800 20 mx2.mailhaven.example.
  @ TXT 1800 v=spf1 mx include:spf.mailhaven.example -all
  _dmarc TXT 1800 v=DMARC1; p=quarantine; rua=mailto:dmarc@alder-and-finch.com
  mh1._domainkey TXT 3600 v=DKIM1; k=rsa; p=MIGfMA0+GCSqGSIb3DQEBAQUAA4/GNADCBiQKBgQ==
  @ CAA 1800 0 issue "letsencrypt.org"
  @ CAA 1800 0 iodef "mailto:security@alder-and-finch.com"
  blog FRAME 1800 https://pages.example/alder?from=blog&lang=en
  lab NS 1800 ns1.lab-hosting.example.`

const forwarded = `
  @ A 1800 198.51.100.24
  www CNAME 1800 copperkettle.net.
  @ TXT 1799 v=spf1 include:spf.efwd.registrar-servers.com ~all`

const workspace = `
  @ ALIAS 300 edge.hosting.example.
  app AAAA 1800 2001:db8:40::15
  @ MX 3600 1 smtp.google.com.
  @ TXT 1800 v=spf1 include:_spf.google.com ~all`

const privateEmail = `
  @ A 1800 203.0.113.80
  @ MX 1800 10 mx1.privateemail.com.
  @ MX 1800 10 mx2.privateemail.com.
  @ TXT 1800 v=spf1 include:spf.privateemail.com ~all`

const mxe = `
  @ URL301 1800 https://shop.oldmillpottery.com/
  shop A 1800 192.0.2.61
  oldmillpottery.com MXE 1800 192.0.2.62`

const pretzels = `
  @ A 1800 198.51.100.78
  @ TXT 1800 Brötchen & Brezeln, täglich`

// setHosts cannot express SRV either.
const observatory = `
  dome A 60 192.0.2.200
  _sip._tcp SRV 1800 10 5 5060 sip.home-observatory.net.
  @ A 1800 192.0.2.199`

const special = [
  // One of each email type.
  sample('alder-and-finch.com', [1810, 206], shop, { autoRenew: true, emailType: 'MX' }),
  sample('copperkettle.net', [720, 375], forwarded, { emailType: 'FWD' }),
  sample('quietharbour.org', [12, 353], parked),
  sample('brightledger.io', [1100, 730], workspace, {
    autoRenew: true,
    isPremium: true,
    dns: 'premium',
    emailType: 'GMAIL',
  }),
  sample('meadowpost.com', [400, 330], privateEmail, { emailType: 'OX' }),
  sample('oldmillpottery.com', [2900, 122], mxe, { emailType: 'MXE' }),
  // Nameservers elsewhere, or of FreeDNS.
  sample('farwood.dev', [95, 270], '', {
    dns: 'custom',
    nameservers: ['ns1.farwood-hosting.example', 'ns2.farwood-hosting.example'],
  }),
  sample('borrowed-plot.com', [60, 305], '@ A 1800 203.0.113.9\nwww CNAME 1800 DOMAIN.', {
    owner: 'someone-else',
    isOwner: false,
    dns: 'free',
  }),
  // Readable, but not editable.
  sample('locked-vault.com', [1500, 325], '@ A 1800 192.0.2.141', { isLocked: true }),
  // Expired, and close to it.
  sample('lapsed-lantern.com', [379, -14], parked),
  sample('last-train.net', [1480, -20], '', { whoisGuard: 'DISABLED' }),
  sample('nearly-autumn.org', [356, 9], parked),
  sample('ticking-clocks.com', [340, 25], '', { autoRenew: true }),
  // A suffix of two labels, an internationalized name, and records that only the panel can make.
  sample('thistlebakery.co.uk', [640, 90], '@ A 1800 198.51.100.77\nwww CNAME 1800 DOMAIN.', {
    whoisGuard: 'NOTPRESENT',
  }),
  sample('xn--bckerei-knig-gcb4x.de', [230, 135], pretzels, { whoisGuard: 'NOTPRESENT' }),
  sample('home-observatory.net', [700, 31], observatory),
]
