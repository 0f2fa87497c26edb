import { type DomainSketch, type HostSketch, rights } from './domain.ts'

const day = 86_400_000

/** The domains of a fresh sandbox: one of each kind worth meeting, and enough plain ones to page through. */
export function makeSamples(now: number): DomainSketch[] {
  const on = (days: number) => new Date(now + days * day).toISOString().slice(0, 10)
  const since = (registered: number, left: number) => ({
    created: on(-registered),
    expires: on(left),
  })
  return [
    {
      name: 'alder-and-finch.com',
      ...since(1810, 206),
      autoRenew: true,
      emailType: 'MX',
      hosts: shop,
    },
    {
      name: 'copperkettle.net',
      ...since(720, 10 + 365),
      emailType: 'FWD',
      hosts: [
        row('@', 'A', '198.51.100.24'),
        row('www', 'CNAME', 'copperkettle.net.'),
        row('@', 'TXT', 'v=spf1 include:spf.efwd.registrar-servers.com ~all', 1799),
      ],
      forwards: [
        { mailbox: 'hello', to: 'nora@mail.example' },
        { mailbox: 'orders', to: 'kitchen@mail.example' },
      ],
    },
    { name: 'quietharbour.org', ...since(12, 353), hosts: parking('quietharbour.org') },
    {
      name: 'brightledger.io',
      ...since(1100, 730),
      autoRenew: true,
      isPremium: true,
      dns: 'premium',
      emailType: 'GMAIL',
      hosts: [
        row('@', 'ALIAS', 'edge.hosting.example.', 300),
        row('app', 'AAAA', '2001:db8:40::15'),
        { ...row('@', 'MX', 'smtp.google.com.', 3600), mxPref: 1 },
        row('@', 'TXT', 'v=spf1 include:_spf.google.com ~all'),
      ],
    },
    {
      name: 'meadowpost.com',
      ...since(400, 330),
      emailType: 'OX',
      hosts: [
        row('@', 'A', '203.0.113.80'),
        row('@', 'MX', 'mx1.privateemail.com.'),
        row('@', 'MX', 'mx2.privateemail.com.'),
        row('@', 'TXT', 'v=spf1 include:spf.privateemail.com ~all'),
      ],
    },
    {
      name: 'oldmillpottery.com',
      ...since(2900, 122),
      emailType: 'MXE',
      hosts: [
        row('@', 'URL301', 'https://shop.oldmillpottery.com/'),
        row('shop', 'A', '192.0.2.61'),
        {
          ...row('oldmillpottery.com', 'MXE', '192.0.2.62'),
          associatedAppTitle: 'MXE',
          friendlyName: 'MXE1',
        },
      ],
    },
    {
      name: 'farwood.dev',
      ...since(95, 270),
      dns: 'custom',
      nameservers: ['ns1.farwood-hosting.example', 'ns2.farwood-hosting.example'],
    },
    {
      name: 'stale-anchor.net',
      ...since(95, 270),
      dns: 'custom',
      nameservers: ['ns1.elsewhere.example', 'ns2.elsewhere.example'],
      whenElsewhere: 'stale',
      hosts: parking('stale-anchor.net'),
    },
    {
      name: 'borrowed-plot.com',
      ...since(60, 305),
      owner: 'someone-else',
      isOwner: false,
      dns: 'free',
      hosts: [row('@', 'A', '203.0.113.9'), row('www', 'CNAME', 'borrowed-plot.com.')],
    },
    {
      name: 'shared-orchard.com',
      ...since(900, 195),
      owner: 'orchard-owner',
      isOwner: false,
      rights: rights.filter((right) => right !== 'hosts' && right !== 'nameserver'),
      hosts: [row('@', 'A', '192.0.2.140')],
    },
    {
      name: 'locked-vault.com',
      ...since(1500, 325),
      isLocked: true,
      hosts: [row('@', 'A', '192.0.2.141')],
    },
    { name: 'lapsed-lantern.com', ...since(379, -14), hosts: parking('lapsed-lantern.com') },
    { name: 'last-train.net', ...since(1480, -20), whoisGuard: 'DISABLED' },
    { name: 'nearly-autumn.org', ...since(356, 9), hosts: parking('nearly-autumn.org') },
    { name: 'ticking-clocks.com', ...since(340, 25), autoRenew: true },
    {
      name: 'thistlebakery.co.uk',
      ...since(640, 90),
      whoisGuard: 'NOTPRESENT',
      hosts: [row('@', 'A', '198.51.100.77'), row('www', 'CNAME', 'thistlebakery.co.uk.')],
    },
    {
      name: 'xn--bckerei-knig-gcb4x.de',
      ...since(230, 135),
      whoisGuard: 'NOTPRESENT',
      hosts: [row('@', 'A', '198.51.100.78'), row('@', 'TXT', 'Brötchen & Brezeln, täglich')],
    },
    { name: 'home-observatory.net', ...since(700, 31), hosts: observatory },
    ...Array.from({ length: 32 }, (_, index) => makePlain(index, since)),
  ]
}

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

// What setHosts cannot express: a flag and a type that only the panel can make.
const observatory: HostSketch[] = [
  { ...row('dome', 'A', '192.0.2.200', 60), isDdns: true },
  row('_sip._tcp', 'SRV', '10 5 5060 sip.home-observatory.net.'),
  row('@', 'A', '192.0.2.199'),
]

function parking(domain: string): HostSketch[] {
  return [
    { ...row('www', 'CNAME', 'parkingpage.namecheap.com.'), friendlyName: 'CNAME Record' },
    {
      ...row('@', 'URL', `http://www.${domain}/?from=@`),
      associatedAppTitle: 'URL Forwarding',
      friendlyName: 'URL Record',
    },
  ]
}

function makePlain(
  index: number,
  since: (registered: number, left: number) => { created: string; expires: string },
): DomainSketch {
  const first = ['amber', 'birch', 'cedar', 'dune', 'ember', 'fern', 'gale', 'heron'][index % 8]
  const second = ['field', 'works', 'street', 'cabin'][Math.floor(index / 8)]
  const suffix = ['com', 'net', 'org', 'shop'][(index * 3) % 4]
  const name = `${first}${second}.${suffix}`
  return {
    name,
    ...since(40 + index * 37, 45 + index * 11),
    emailType: index % 5 === 0 ? 'FWD' : 'NONE',
    hosts: [row('@', 'A', `192.0.2.${10 + index}`), row('www', 'CNAME', `${name}.`)],
  }
}

function row(name: string, type: string, address: string, ttl = 1800): HostSketch {
  return { name, type, address, ttl }
}
