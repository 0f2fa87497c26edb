import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { Registrar, type RegistrarOptions } from './server/registrar.ts'
import { buildServer } from './server/server.ts'

export type { Domain, DomainSketch, Host, HostSketch } from './account/domain.ts'
export type { Fault, FaultInput } from './server/faults.ts'
export type { Call } from './server/registrar.ts'

export interface SandboxOptions extends RegistrarOptions {
  host?: string
  /** 0: any free port. */
  port?: number
  log?: FastifyBaseLogger | false
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

export async function startSandbox(options: SandboxOptions) {
  const { host = '127.0.0.1', port = 0, log } = options
  const registrar = await Registrar.open(options)
  const app = buildServer(registrar, log || undefined)
  await app.listen({ host, port })
  const { family, address, port: bound } = app.server.address() as AddressInfo // It listens on TCP.
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/xml.response`
  const close = (): Promise<void> => app.close()
  /** `url`: the address of the API, ending in `/xml.response`. */
  return Object.assign(registrar, { url, close, [Symbol.asyncDispose]: close })
}
