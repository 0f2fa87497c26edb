import { type DomainSketch, type HostSketch, rights } from './domain.ts'

const dayMs = 86_400_000

/** Registration and expiry, as days before and after the start of the sandbox. */
type Term = (registered: number, left: number) => { created: string; expires: string }

/** The domains of a new sandbox: one of each kind of interest, and enough plain ones for several pages. */
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
  {
    name: 'alder-and-finch.com',
    ...term(1810, 206),
    autoRenew: true,
    emailType: 'MX',
    hosts: shop,
  },
  {
    name: 'copperkettle.net',
    ...term(720, 10 + 365),
    emailType: 'FWD',
    hosts: forwarded,
    forwards: [
      { mailbox: 'hello', to: 'nora@mail.example' },
      { mailbox: 'orders', to: 'kitchen@mail.example' },
    ],
  },
  { name: 'quietharbour.org', ...term(12, 353), hosts: parkingHosts('quietharbour.org') },
  {
    name: 'brightledger.io',
    ...term(1100, 730),
    autoRenew: true,
    isPremium: true,
    dns: 'premium',
    emailType: 'GMAIL',
    hosts: workspace,
  },
  { name: 'meadowpost.com', ...term(400, 330), emailType: 'OX', hosts: privateEmail },
  { name: 'oldmillpottery.com', ...term(2900, 122), emailType: 'MXE', hosts: mxe },
]

/** Domains whose nameservers are elsewhere, or on FreeDNS. */
const nameserverSamples = (term: Term): DomainSketch[] => [
  {
    name: 'farwood.dev',
    ...term(95, 270),
    dns: 'custom',
    nameservers: ['ns1.farwood-hosting.example', 'ns2.farwood-hosting.example'],
  },
  {
    name: 'stale-anchor.net',
    ...term(95, 270),
    dns: 'custom',
    nameservers: ['ns1.elsewhere.example', 'ns2.elsewhere.example'],
    whenElsewhere: 'stale',
    hosts: parkingHosts('stale-anchor.net'),
  },
  {
    name: 'borrowed-plot.com',
    ...term(60, 305),
    owner: 'someone-else',
    isOwner: false,
    dns: 'free',
    hosts: [row('@', 'A', '203.0.113.9'), row('www', 'CNAME', 'borrowed-plot.com.')],
  },
]

/** Domains that this account may read, but not edit. */
const accessSamples = (term: Term): DomainSketch[] => [
  {
    name: 'shared-orchard.com',
    ...term(900, 195),
    owner: 'orchard-owner',
    isOwner: false,
    rights: rights.filter((right) => right !== 'hosts' && right !== 'nameserver'),
    hosts: [row('@', 'A', '192.0.2.140')],
  },
  {
    name: 'locked-vault.com',
    ...term(1500, 325),
    isLocked: true,
    hosts: [row('@', 'A', '192.0.2.141')],
  },
]

const expirySamples = (term: Term): DomainSketch[] => [
  { name: 'lapsed-lantern.com', ...term(379, -14), hosts: parkingHosts('lapsed-lantern.com') },
  { name: 'last-train.net', ...term(1480, -20), whoisGuard: 'DISABLED' },
  { name: 'nearly-autumn.org', ...term(356, 9), hosts: parkingHosts('nearly-autumn.org') },
  { name: 'ticking-clocks.com', ...term(340, 25), autoRenew: true },
]

/** A suffix of two labels, an internationalized name, and records that only the panel can make. */
const nameSamples = (term: Term): DomainSketch[] => [
  {
    name: 'thistlebakery.co.uk',
    ...term(640, 90),
    whoisGuard: 'NOTPRESENT',
    hosts: [row('@', 'A', '198.51.100.77'), row('www', 'CNAME', 'thistlebakery.co.uk.')],
  },
  {
    name: 'xn--bckerei-knig-gcb4x.de',
    ...term(230, 135),
    whoisGuard: 'NOTPRESENT',
    hosts: [row('@', 'A', '198.51.100.78'), row('@', 'TXT', 'Brötchen & Brezeln, täglich')],
  },
  { name: 'home-observatory.net', ...term(700, 31), hosts: observatory },
]

function plainSample(index: number, term: Term): DomainSketch {
  const first = ['amber', 'birch', 'cedar', 'dune', 'ember', 'fern', 'gale', 'heron'][index % 8]
  const second = ['field', 'works', 'street', 'cabin'][Math.floor(index / 8)]
  const suffix = ['com', 'net', 'org', 'shop'][(index * 3) % 4]
  const name = `${first}${second}.${suffix}`
  return {
    name,
    ...term(40 + index * 37, 45 + index * 11),
    emailType: index % 5 === 0 ? 'FWD' : 'NONE',
    hosts: [row('@', 'A', `192.0.2.${10 + index}`), row('www', 'CNAME', `${name}.`)],
  }
}

const row = (name: string, type: string, address: string, ttl = 1800): HostSketch => ({
  name,
  type,
  address,
  ttl,
})

/** The rows that the registrar puts into an empty zone. */
const parkingHosts = (domain: string): HostSketch[] => [
  { ...row('www', 'CNAME', 'parkingpage.namecheap.com.'), friendlyName: 'CNAME Record' },
  {
    ...row('@', 'URL', `http://www.${domain}/?from=@`),
    associatedAppTitle: 'URL Forwarding',
    friendlyName: 'URL Record',
  },
]

const shop: HostSketch[] = [
  row('@', 'A', '203.0.113.17', 1799),
  row('@', 'AAAA', '2001:db8:7::17', 1799),
  row('www', 'CNAME', 'alder-and-finch.com.'),
  row('@', 'MX', 'mx1.mailhaven.example.'),
  { ...row('@', 'MX', 'mx2.mailhaven.example.'), mxPref: 20 },
  row('@', 'TXT', 'v=spf1 mx include:spf.mailhaven.example -all'),
  row('_dmarc', 'TXT', 'v=DMARC1; p=quarantine; rua=mailto:dmarc@alder-and-finch.com'),
  row(
    'mh1._domainkey',
    'TXT',
    'v=DKIM1; k=rsa; p=MIGfMA0+GCSqGSIb3DQEBAQUAA4/GNADCBiQKBgQ==',
    3600,
  ),
  row('@', 'CAA', '0 issue "letsencrypt.org"'),
  row('@', 'CAA', '0 iodef "mailto:security@alder-and-finch.com"'),
  row('blog', 'FRAME', 'https://pages.example/alder?from=blog&lang=en'),
  row('lab', 'NS', 'ns1.lab-hosting.example.'),
]

const forwarded: HostSketch[] = [
  row('@', 'A', '198.51.100.24'),
  row('www', 'CNAME', 'copperkettle.net.'),
  row('@', 'TXT', 'v=spf1 include:spf.efwd.registrar-servers.com ~all', 1799),
]

const workspace: HostSketch[] = [
  row('@', 'ALIAS', 'edge.hosting.example.', 300),
  row('app', 'AAAA', '2001:db8:40::15'),
  { ...row('@', 'MX', 'smtp.google.com.', 3600), mxPref: 1 },
  row('@', 'TXT', 'v=spf1 include:_spf.google.com ~all'),
]

const privateEmail: HostSketch[] = [
  row('@', 'A', '203.0.113.80'),
  row('@', 'MX', 'mx1.privateemail.com.'),
  row('@', 'MX', 'mx2.privateemail.com.'),
  row('@', 'TXT', 'v=spf1 include:spf.privateemail.com ~all'),
]

const mxe: HostSketch[] = [
  row('@', 'URL301', 'https://shop.oldmillpottery.com/'),
  row('shop', 'A', '192.0.2.61'),
  {
    ...row('oldmillpottery.com', 'MXE', '192.0.2.62'),
    associatedAppTitle: 'MXE',
    friendlyName: 'MXE1',
  },
]

// setHosts can express neither the dynamic-DNS flag nor SRV: only the panel makes them.
const observatory: HostSketch[] = [
  { ...row('dome', 'A', '192.0.2.200', 60), isDdns: true },
  row('_sip._tcp', 'SRV', '10 5 5060 sip.home-observatory.net.'),
  row('@', 'A', '192.0.2.199'),
]
