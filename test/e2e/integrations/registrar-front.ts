import { readFile } from 'node:fs/promises'
import { createServer, request as sendRequest } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { reservePorts } from '../../support/ports.ts'
import { createCertificate } from './acme-server.ts'

const registrar = 'api.namecheap.com'
const addressService = 'dynamicdns.park-your-domain.com'

/** Stands for the registrar's host name before the domain service. */
export interface RegistrarFront extends AsyncDisposable {
  /** For the environment of a program: its calls to the registrar arrive at the service. */
  env: Record<string, string>
}

/**
 * A TLS server with the registrar's name, and a proxy that leads to it: programs whose address of the registrar is fixed
 * need no other name resolution, and no port 443.
 */
export async function startRegistrarFront(folder: string, service: string): Promise<RegistrarFront> {
  const files = {
    certificate: join(folder, 'front.pem'),
    privateKey: join(folder, 'front-key.pem'),
  }
  await createCertificate(files, [registrar, addressService])
  const [port, proxyPort] = [await reservePorts(), await reservePorts()]
  const { port: servicePort } = new URL(service)
  const tls = createTlsServer(
    { cert: await readFile(files.certificate), key: await readFile(files.privateKey) },
    (incoming, outgoing) => {
      if (incoming.headers.host === addressService) return outgoing.end('127.0.0.1')
      const path = `/integrations/registrar${incoming.url}`
      const { method, headers } = incoming
      const forwarded = sendRequest({ host: '127.0.0.1', port: servicePort, path, method, headers }, (answer) =>
        answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers)),
      )
      forwarded.on('error', () => outgoing.destroy())
      incoming.pipe(forwarded)
    },
  ).listen(port, '127.0.0.1')
  const proxy = createServer()
    .on('connect', (request, client) => {
      const isKnown = [registrar, addressService].some((name) => request.url === `${name}:443`)
      if (!isKnown) return client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      const server = connect(port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n')
        server.pipe(client).pipe(server)
      })
      for (const socket of [client, server]) socket.on('error', () => server.destroy())
    })
    .listen(proxyPort, '127.0.0.1')
  return {
    env: {
      HTTPS_PROXY: `http://127.0.0.1:${proxyPort}`,
      SSL_CERT_FILE: files.certificate,
      REQUESTS_CA_BUNDLE: files.certificate,
    },
    async [Symbol.asyncDispose]() {
      for (const server of [tls, proxy]) {
        server.closeAllConnections()
        server.close()
      }
    },
  }
}
