import http from 'node:http'
import https from 'node:https'
import { createRequire } from 'node:module'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { access, start } from './support/start.ts'

/** The part of the client that is used here; the package brings no types. */
interface Client {
  dns: {
    getHosts(domain: string): Promise<{ EmailType: string; hosts: Record<string, unknown>[] }>
    setHosts(domain: string, hosts: object[], params: object): Promise<{ IsSuccess: boolean }>
  }
  domains: {
    getList(options: object): Promise<{ domains: { Name: string }[]; TotalItems: number }>
    getInfo(domain: string): Promise<{ DnsDetails: { Nameserver: string[] } }>
  }
}

// The client knows only the registrar's own hosts, so its requests are turned to loopback here.
const direct = https.request
let port = ''

beforeEach(() => {
  const turned = (options: http.RequestOptions, listener: (answer: http.IncomingMessage) => void) =>
    http.request({ ...options, protocol: 'http:', hostname: '127.0.0.1', port }, listener)
  Object.assign(https, { request: turned })
})

afterEach(() => {
  Object.assign(https, { request: direct })
})

function makeClient(url: string, key = access.apiKey): Client {
  port = new URL(url).port
  const Namecheap = createRequire(import.meta.url)('@rqt/namecheap')
  return new Namecheap({ user: access.apiUser, key, sandbox: true, ip: '127.0.0.1' })
}

test('a third-party client writes a zone and reads it back', async () => {
  await using registrar = await start()
  const client = makeClient(registrar.sandbox.url)
  const hosts = [
    { HostName: '@', RecordType: 'A', Address: '192.0.2.44', TTL: 300 },
    { HostName: 'www', RecordType: 'CNAME', Address: 'quietharbour.org' },
    { HostName: '@', RecordType: 'MX', Address: 'mx.mail.example.', MXPref: 5 },
    { HostName: '@', RecordType: 'TXT', Address: 'v=spf1 mx ip4:192.0.2.44 +all' },
  ]

  const written = await client.dns.setHosts('quietharbour.org', hosts, { EmailType: 'MX' })
  const zone = await client.dns.getHosts('quietharbour.org')

  expect(written).toMatchObject({ Domain: 'quietharbour.org', IsSuccess: true })
  expect(zone).toMatchObject({ EmailType: 'MX', IsUsingOurDNS: true })
  expect(zone.hosts).toMatchObject([
    { Name: '@', Type: 'A', Address: '192.0.2.44', TTL: 300 },
    { Name: 'www', Type: 'CNAME', Address: 'quietharbour.org.', TTL: 1800 },
    { Name: '@', Type: 'MX', Address: 'mx.mail.example.', MXPref: 5 },
    { Name: '@', Type: 'TXT', Address: 'v=spf1 mx ip4:192.0.2.44 +all' },
  ])
})

test('a third-party client lists the domains and describes one', async () => {
  await using registrar = await start()
  const client = makeClient(registrar.sandbox.url)

  const list = await client.domains.getList({ sort: 'name', pageSize: 10, page: 2 })
  const info = await client.domains.getInfo('farwood.dev')

  expect(list).toMatchObject({ TotalItems: 47, CurrentPage: 2, PageSize: 10 })
  expect(list.domains).toHaveLength(10)
  expect(info.DnsDetails.Nameserver).toContain('ns1.farwood-hosting.example')
})

test('a third-party client understands a refusal', async () => {
  await using registrar = await start()
  const client = makeClient(registrar.sandbox.url, 'wrong')

  const outcome = client.dns.getHosts('quietharbour.org')

  await expect(outcome).rejects.toMatchObject({ props: { Number: 1011102 } })
})
