import type { HostSketch } from './domain.ts'

export const row = (name: string, type: string, address: string, ttl = 1800): HostSketch => ({
  name,
  type,
  address,
  ttl,
})

/** The rows that the registrar puts into an empty zone. */
export const parkingHosts = (domain: string): HostSketch[] => [
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

export const sampleHosts = { shop, forwarded, workspace, privateEmail, mxe, observatory }
