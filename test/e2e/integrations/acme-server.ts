import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sandbox } from '../../../packages/registrar-sandbox/src/index.ts'
import { reservePorts } from '../../support/ports.ts'
import { runProgram, startProgram } from './program.ts'

/** pebble, which resolves names at pebble-challtestsrv. */
export interface AcmeServer extends AsyncDisposable {
  directory: string
  /** The certificate of pebble's own HTTPS. */
  certificate: string
  /** `host:port` of the DNS server. */
  resolver: string
  /** Publishes the ACME challenges of a zone. */
  publish: (domain: string, sandbox: Sandbox) => Promise<void>
}

export async function startAcmeServer(folder: string): Promise<AcmeServer> {
  const [port, management, dns, dnsManagement] = await Promise.all([
    reservePorts(),
    reservePorts(),
    reservePorts(),
    reservePorts(),
  ])
  const certificate = join(folder, 'pebble.pem')
  const privateKey = join(folder, 'pebble-key.pem')
  await createCertificate({ certificate, privateKey }, ['localhost'])
  const config = join(folder, 'pebble.json')
  const listenAddress = `127.0.0.1:${port}`
  await writeFile(
    config,
    JSON.stringify({
      pebble: {
        listenAddress,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate,
        privateKey,
        httpPort: 80,
        tlsPort: 443,
      },
    }),
  )
  const resolver = `127.0.0.1:${dns}`
  const api = `http://127.0.0.1:${dnsManagement}`
  const disabled = ['-http01', '', '-https01', '', '-tlsalpn01', '']
  const servers = [
    await startProgram(
      {
        command: 'pebble-challtestsrv',
        args: ['-dns01', resolver, '-management', `127.0.0.1:${dnsManagement}`, ...disabled],
      },
      async () => (await post(api, 'clear-txt', { host: 'ready.' })).ok,
    ),
    await startProgram(
      {
        command: 'pebble',
        args: ['-config', config, '-dnsserver', resolver],
        env: { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' },
      },
      () => runProgram({ command: 'curl', args: ['-fsk', `https://localhost:${port}/dir`] }).then(Boolean),
    ),
  ]
  const published = new Map<string, string[]>()
  return {
    directory: `https://localhost:${port}/dir`,
    certificate,
    resolver,
    publish: async (domain, sandbox) => {
      for (const [host, values] of challengesOf(domain, sandbox, published))
        await publishTxt(api, { host, values, published })
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server[Symbol.asyncDispose]()
    },
  }
}

/** A certificate of its own for these names, and for the loopback address. */
export const createCertificate = (
  { certificate, privateKey }: { certificate: string; privateKey: string },
  names: string[],
) =>
  runProgram({
    command: 'openssl',
    args: [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', privateKey, '-out', certificate, '-days', '2', '-subj', `/CN=${names[0]}`],
      '-addext',
      `subjectAltName=${names.map((name) => `DNS:${name},`).join('')}IP:127.0.0.1`,
    ],
  })

const post = (api: string, path: string, body: object) =>
  fetch(`${api}/${path}`, { method: 'POST', body: JSON.stringify(body) })

// The values at each name that has or had a challenge.
function challengesOf(domain: string, sandbox: Sandbox, published: Map<string, string[]>) {
  const challenges = new Map<string, string[]>()
  for (const host of published.keys()) if (host.endsWith(`.${domain}.`)) challenges.set(host, [])
  for (const { name, type, address } of sandbox.zone(domain).hosts) {
    if (type !== 'TXT' || !name.startsWith('_acme-challenge')) continue
    const host = `${name}.${domain}.`
    challenges.set(host, [...(challenges.get(host) ?? []), address])
  }
  return challenges
}

interface Publication {
  host: string
  values: string[]
  published: Map<string, string[]>
}

// The server can only add a value, or clear all of a name.
async function publishTxt(api: string, { host, values, published }: Publication) {
  const before = published.get(host) ?? []
  const isShorter = before.some((value) => !values.includes(value))
  if (isShorter) await post(api, 'clear-txt', { host })
  for (const value of values) if (isShorter || !before.includes(value)) await post(api, 'set-txt', { host, value })
  published.set(host, values)
}
