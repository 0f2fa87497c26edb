import { promises as dns, type LookupAddress } from 'node:dns'
import { BlockList } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isInNetworks } from '@domains-and-files/auth'

/** Special-purpose addresses (RFC 6890 and its registries), and those where clouds serve secrets to their machines. */
const refused = {
  ipv4: [
    ...[
      '0.0.0.0/8',
      '10.0.0.0/8',
      '100.64.0.0/10',
      '127.0.0.0/8',
      '168.63.129.16',
      '169.254.0.0/16',
    ],
    ...['172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24', '192.168.0.0/16', '198.18.0.0/15'],
    ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ],
  // Also those that translate to IPv4 in other ways than the two below.
  ipv6: [
    ...['::/96', '::ffff:0:0:0/96', '64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32'],
    ...['2002::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
  ],
}

/** Networks that hold IPv4 addresses in their last 32 bits: IPv4-mapped (RFC 4291) and NAT64 (RFC 6052). */
const translated = new BlockList()
translated.addSubnet('::ffff:0:0', 96, 'ipv6')
translated.addSubnet('64:ff9b::', 96, 'ipv6')

/** Whether a webhook may not be delivered to an address: it is ours, or one that only this machine or network can reach. */
export function isRefused(address: string, allowed: readonly string[]): boolean {
  const reached = ipv4In(address) ?? address
  if (isInNetworks(address, allowed) || isInNetworks(reached, allowed)) return false
  const own = Object.values(networkInterfaces()).flatMap((each = []) =>
    each.map((one) => one.address),
  )
  return isInNetworks(reached, [...refused.ipv4, ...refused.ipv6, ...own.map(withoutZone)])
}

const withoutZone = (address: string) => address.replace(/%.*/, '')

/** The IPv4 address that an IPv6 address leads to. */
function ipv4In(text: string): string | undefined {
  const address = withoutZone(text)
  if (!address.includes(':') || !translated.check(address, 'ipv6')) return undefined
  // As URLs have it, the last 32 bits are hexadecimal.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':')
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** All addresses of a host. Connect to these, so that nobody can exchange them after the check. @throws {AddressRefused} */
export async function resolveHost(
  host: string,
  allowed: readonly string[],
): Promise<LookupAddress[]> {
  const found = await dns.lookup(host.replace(/^\[|\]$/g, ''), { all: true })
  const wrong = found.find(({ address }) => isRefused(address, allowed))
  if (wrong) throw new AddressRefused(`${host} leads to ${wrong.address}, where no webhook is sent`)
  return found
}

export class AddressRefused extends Error {}
