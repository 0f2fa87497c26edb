import type { IncomingHttpHeaders } from 'node:http'
import { isIP, isIPv4, isIPv6 } from 'node:net'
import { z } from 'zod'

/** The proxies whose `X-Forwarded-For` is trusted: all, none, these addresses, or a number of hops. */
export type TrustProxy = boolean | string[] | ((address: string, hop: number) => boolean)

/** The setting TRUST_PROXY: `true`, `false`, a number of hops, or addresses and networks. Trusts nobody by default. */
export const trustProxySetting = z.string().default('false').transform(readTrustProxy)

/**
 * Removes ports from the addresses in `X-Forwarded-For`: some proxies write `192.0.2.1:4711`, and a client would
 * otherwise count as another one on each connection.
 */
export function stripForwardedPorts(headers: IncomingHttpHeaders) {
  const field = headers['x-forwarded-for']
  if (typeof field !== 'string' || !field.includes(':')) return
  headers['x-forwarded-for'] = field
    .split(',')
    .map((part) => stripPort(part.trim()))
    .join(', ')
}

function stripPort(text: string): string {
  const [, v4 = ''] = /^([0-9.]+):[0-9]{1,5}$/.exec(text) ?? []
  if (isIPv4(v4)) return v4
  const [, v6 = ''] = /^\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?$/.exec(text) ?? []
  return isIPv6(v6) ? v6 : text
}

function readTrustProxy(text: string, context: z.core.$RefinementCtx): TrustProxy {
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^[0-9]+$/.test(text)) return (_address, hop) => hop < Number(text)
  const proxies = splitList(text)
  if (proxies.length > 0 && proxies.every(isNetwork)) return proxies
  context.addIssue('must be true, false, a number of hops, or addresses such as 10.0.0.0/8')
  return z.NEVER
}

// What Fastify accepts: an address, a network, or its name for a range of private addresses.
function isNetwork(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', length, ...more] = text.split('/')
  const max = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  if (length === undefined) return max > 0
  const bits = /^[0-9]{1,3}$/.test(length) ? Number(length) : 0
  return more.length === 0 && bits > 0 && bits <= max
}

/** The parts of a comma-separated setting, without blanks and empty parts. */
export const splitList = (text: string) => text.split(',').flatMap((part) => part.trim() || [])
