import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import { stripForwardedPorts, type TrustProxy } from '../settings/trust-proxy.ts'

/** The address of a request's client, by the rules of Fastify's `request.ip`, for requests that Fastify does not see. */
export function clientAddressReader(trustProxy: TrustProxy): (request: IncomingMessage) => string {
  if (trustProxy === false) return ({ socket }) => socket.remoteAddress ?? ''
  const trusts = trustFunction(trustProxy)
  return (request) => {
    stripForwardedPorts(request.headers)
    return proxyAddr(request, trusts)
  }
}

/** Whether a trusted proxy forwarded a request. */
export function forwardingCheck(trustProxy: TrustProxy): (request: IncomingMessage) => boolean {
  if (trustProxy === false) return () => false
  const trusts = trustFunction(trustProxy)
  return (request) => proxyAddr.all(request, trusts).length > 1
}

function trustFunction(trustProxy: Exclude<TrustProxy, false>) {
  if (typeof trustProxy === 'function') return trustProxy
  return trustProxy === true ? () => true : proxyAddr.compile(trustProxy)
}
