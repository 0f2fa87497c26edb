import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AcmeServer } from './acme-server.ts'
import { runProgram } from './program.ts'
import type { RegistrarFront } from './registrar-front.ts'

/** A certificate for these names. */
export interface Order {
  /** Of temporary files. */
  folder: string
  acme: AcmeServer
  /** Of the domain service. */
  url: string
  token: string
  names: string[]
  /** Leads to the service by the registrar's own protocol. */
  front?: RegistrarFront
}

/** Obtains a certificate with lego, by httpreq or by the registrar's protocol. */
export async function runLego({ folder, acme, url, token, names, front }: Order) {
  const path = await mkdtemp(join(folder, 'lego-'))
  await runProgram({
    command: 'lego',
    args: [
      ...['--accept-tos', '--email', 'you@example.com', '--server', acme.directory],
      ...['--path', path, '--dns', front ? 'namecheap' : 'httpreq'],
      ...['--cert.timeout', '120', '--dns.disable-cp', '--dns.resolvers', acme.resolver],
      ...names.flatMap((name) => ['--domains', name]),
      'run',
    ],
    env: {
      LEGO_CA_CERTIFICATES: acme.certificate,
      HTTPREQ_ENDPOINT: `${url}/integrations/acme`,
      HTTPREQ_USERNAME: 'any',
      HTTPREQ_PASSWORD: token,
      HTTPREQ_HTTP_TIMEOUT: '120',
      NAMECHEAP_API_USER: 'any',
      NAMECHEAP_API_KEY: token,
      NAMECHEAP_HTTP_TIMEOUT: '120',
      NAMECHEAP_POLLING_INTERVAL: '1',
      ...front?.env,
    },
  })
  const file = `${(names[0] ?? '').replace('*', '_')}.crt`
  await expectNames(join(path, 'certificates', file), names)
}

/** @throws {assert.AssertionError} where the certificate in a file has other names. */
export async function expectNames(file: string, names: string[]) {
  const { subjectAltName = '' } = new X509Certificate(await readFile(file))
  const found = subjectAltName.split(', ').map((name) => name.replace('DNS:', ''))
  assert.deepEqual(found.sort(), names.toSorted())
}
