import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Serves `target` under a path prefix, as nginx and Caddy do in docs/proxy/. */
export async function startPrefixProxy(target: string, prefix: string) {
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming
    if (!url.startsWith(`${prefix}/`)) return outgoing.writeHead(404).end()
    const forwarded = request(target + url.slice(prefix.length), { method, headers })
    forwarded.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // Listening on TCP.
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
