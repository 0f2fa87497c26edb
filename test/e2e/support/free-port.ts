import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A port without a listener. */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // An address with a port, since we listen on one.
  server.close()
  return port
}
