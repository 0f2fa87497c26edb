import { promises as dns, type LookupAddress } from 'node:dns'
import { networkInterfaces } from 'node:os'
import { isInNetworks, Network } from '@domains-and-files/auth'
import { booleanSetting, HttpError, listSetting, type Named } from '@domains-and-files/http'
import type { z } from 'zod'

/** The settings of webhooks, as a zod shape to spread into a service's schema. */
export const webhookSettings = {
  WEBHOOK_HTTP: booleanSetting.default(false),
  WEBHOOK_NETWORKS: listSetting(
    (each) => Network.safeParse(each).success,
    'must be networks such as 192.0.2.0/24,::1/128',
  ),
}

/** The part `webhooks` of a service's config. */
export type WebhookConfig = Named<z.output<z.ZodObject<typeof webhookSettings>>, 'WEBHOOK_'>

/** Special-purpose addresses (RFC 6890 and its registries), and metadata services of clouds, which serve secrets. */
const refused = [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16 169.254.0.0/16 172.16.0.0/12',
  '192.0.0.0/24 192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
  '224.0.0.0/4 240.0.0.0/4',
  // Includes ranges with other translations to IPv4 than `translated`.
  '::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16',
  'fc00::/7 fe80::/10 fec0::/10 ff00::/8',
].flatMap((line) => line.split(' '))

/** Networks that embed an IPv4 address in the last 32 bits: IPv4-mapped (RFC 4291) and NAT64 (RFC 6052). */
const translated = ['::ffff:0:0/96', '64:ff9b::/96']

/** Whether webhooks must not reach an address (SSRF): one of this machine, or a special-purpose one, unless allowed. */
export function isRefused(text: string, allowed: readonly string[]): boolean {
  const address = withoutZone(text)
  const reached = isInNetworks(address, translated) ? ipv4In(address) : address
  if (isInNetworks(address, allowed) || isInNetworks(reached, allowed)) return false
  const own = Object.values(networkInterfaces()).flat()
  return isInNetworks(reached, [...refused, ...own.map((each) => withoutZone(each?.address ?? ''))])
}

const withoutZone = (address: string) => address.replace(/%.*/, '')

/** The embedded IPv4 address. The URL parser normalises the last 32 bits to two hexadecimal groups. */
function ipv4In(address: string): string {
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':')
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/**
 * All addresses of a host, checked. Connect to these: a second look-up could return others (DNS rebinding).
 * @throws 400 `webhook_url_refused`
 */
export async function resolveHost(host: string, allowed: readonly string[]): Promise<LookupAddress[]> {
  const found = await dns.lookup(host.replace(/^\[|\]$/g, ''), { all: true })
  const wrong = found.find(({ address }) => isRefused(address, allowed))
  if (wrong) throw urlRefused(`${host} leads to ${wrong.address}, where no webhook is sent`)
  return found
}

/** @throws 400 `webhook_url_refused` */
export async function checkUrl(text: string, { http: allowsHttp, networks }: WebhookConfig) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !(url.protocol === 'https:' || (allowsHttp && url.protocol === 'http:')))
    throw urlRefused(allowsHttp ? 'It is no http or https URL' : 'It is no https URL')
  if (url.username || url.password) throw urlRefused('It has a user name or password in it')
  await resolveHost(url.hostname, networks).catch((error) => {
    // An unresolvable name is accepted: it may resolve later, and each delivery checks it again.
    if (error instanceof HttpError) throw error
  })
}

export const urlRefused = (why: string) => new HttpError(400, 'webhook_url_refused', why)
