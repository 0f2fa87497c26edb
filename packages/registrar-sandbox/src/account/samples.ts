import { titlesOf } from '../protocol/results.ts'
import { type DomainSketch, type HostSketch, rights } from './domain.ts'

const dayMs = 86_400_000

/** Registration and expiry, as days before and after the start of the sandbox. */
type Term = (registered: number, left: number) => { created: string; expires: string }

/** The domains of a new sandbox: one for each special case, and enough plain ones for several pages. */
export function makeSamples(now: number): DomainSketch[] {
  const dayAt = (days: number) => new Date(now + days * dayMs).toISOString().slice(0, 10)
  const term: Term = (registered, left) => ({ created: dayAt(-registered), expires: dayAt(left) })
  return [
    ...mailSamples(term),
    ...nameserverSamples(term),
    ...accessSamples(term),
    ...expirySamples(term),
    ...nameSamples(term),
    ...Array.from({ length: 32 }, (_, index) => plainSample(index, term)),
  ]
}

/** One domain of each email type. */
const mailSamples = (term: Term): DomainSketch[] => [
  { ...sample('alder-and-finch.com', shop), ...term(1810, 206), autoRenew: true, emailType: 'MX' },
  {
    ...sample('copperkettle.net', forwarded),
    ...term(720, 10 + 365),
    emailType: 'FWD',
    forwards: [
      { mailbox: 'hello', to: 'nora@mail.example' },
      { mailbox: 'orders', to: 'kitchen@mail.example' },
    ],
  },
  { ...parked('quietharbour.org'), ...term(12, 353) },
  {
    ...sample('brightledger.io', workspace),
    ...term(1100, 730),
    ...{ autoRenew: true, isPremium: true, dns: 'premium', emailType: 'GMAIL' },
  },
  { ...sample('meadowpost.com', privateEmail), ...term(400, 330), emailType: 'OX' },
  { ...sample('oldmillpottery.com', mxe), ...term(2900, 122), emailType: 'MXE' },
]

/** Domains whose nameservers are elsewhere, or on FreeDNS. */
const nameserverSamples = (term: Term): DomainSketch[] => [
  {
    ...sample('farwood.dev'),
    ...term(95, 270),
    dns: 'custom',
    nameservers: ['ns1.farwood-hosting.example', 'ns2.farwood-hosting.example'],
  },
  {
    ...parked('stale-anchor.net'),
    ...term(95, 270),
    dns: 'custom',
    nameservers: ['ns1.elsewhere.example', 'ns2.elsewhere.example'],
    whenElsewhere: 'stale',
  },
  {
    ...sample('borrowed-plot.com', '@ A 1800 203.0.113.9\nwww CNAME 1800 borrowed-plot.com.'),
    ...term(60, 305),
    ...{ owner: 'someone-else', isOwner: false, dns: 'free' },
  },
]

/** Domains that this account may read, but not edit. */
const accessSamples = (term: Term): DomainSketch[] => [
  {
    ...sample('shared-orchard.com', '@ A 1800 192.0.2.140'),
    ...term(900, 195),
    ...{ owner: 'orchard-owner', isOwner: false },
    rights: rights.filter((right) => right !== 'hosts' && right !== 'nameserver'),
  },
  { ...sample('locked-vault.com', '@ A 1800 192.0.2.141'), ...term(1500, 325), isLocked: true },
]

const expirySamples = (term: Term): DomainSketch[] => [
  { ...parked('lapsed-lantern.com'), ...term(379, -14) },
  { ...sample('last-train.net'), ...term(1480, -20), whoisGuard: 'DISABLED' },
  { ...parked('nearly-autumn.org'), ...term(356, 9) },
  { ...sample('ticking-clocks.com'), ...term(340, 25), autoRenew: true },
]

/** A suffix of two labels, an internationalized name, and records that only the panel can make. */
const nameSamples = (term: Term): DomainSketch[] => [
  { ...sample('thistlebakery.co.uk', bakery), ...term(640, 90), whoisGuard: 'NOTPRESENT' },
  { ...sample('xn--bckerei-knig-gcb4x.de', pretzels), ...term(230, 135), whoisGuard: 'NOTPRESENT' },
  { ...sample('home-observatory.net', observatory), ...term(700, 31) },
]

function plainSample(index: number, term: Term): DomainSketch {
  const first = ['amber', 'birch', 'cedar', 'dune', 'ember', 'fern', 'gale', 'heron'][index % 8]
  const second = ['field', 'works', 'street', 'cabin'][Math.floor(index / 8)]
  const suffix = ['com', 'net', 'org', 'shop'][(index * 3) % 4]
  const name = `${first}${second}.${suffix}`
  return {
    ...sample(name, `@ A 1800 192.0.2.${10 + index}\nwww CNAME 1800 ${name}.`),
    ...term(40 + index * 37, 45 + index * 11),
    emailType: index % 5 === 0 ? 'FWD' : 'NONE',
  }
}

/** A domain with the records that a text has, one a line: name, type, TTL, preference of an MX record, address. */
const sample = (name: string, records = '') => ({
  name,
  hosts: records.split('\n').flatMap(toHost),
})

function toHost(line: string): HostSketch[] {
  const [, name, type = '', ttl, mxPref = '10', address] =
    /^(\S+) (\S+) (\d+) (?:(?<=MX \d+ )(\d+) )?(.*)$/.exec(line.trim()) ?? []
  if (!name || address === undefined) return []
  // setHosts cannot express the dynamic-DNS flag: only the panel sets it.
  const isDdns = name === 'dome'
  return [
    { name, type, address, ttl: Number(ttl), mxPref: Number(mxPref), isDdns, ...titlesOf(type) },
  ]
}

/** A domain with the rows that the registrar puts into an empty zone. */
const parked = (name: string) => ({
  name,
  hosts: [
    {
      ...{ name: 'www', type: 'CNAME', address: 'parkingpage.namecheap.com.' },
      friendlyName: 'CNAME Record',
    },
    {
      ...{ name: '@', type: 'URL', address: `http://www.${name}/?from=@` },
      ...{ associatedAppTitle: 'URL Forwarding', friendlyName: 'URL Record' },
    },
  ],
})

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

const bakery = `
  @ A 1800 198.51.100.77
  www CNAME 1800 thistlebakery.co.uk.`

const pretzels = `
  @ A 1800 198.51.100.78
  @ TXT 1800 Brötchen & Brezeln, täglich`

// setHosts cannot express SRV either.
const observatory = `
  dome A 60 192.0.2.200
  _sip._tcp SRV 1800 10 5 5060 sip.home-observatory.net.
  @ A 1800 192.0.2.199`
