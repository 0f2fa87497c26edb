import { promises as dns, type LookupAddress } from 'node:dns'
import { networkInterfaces } from 'node:os'
import { isInNetworks } from '@domains-and-files/auth'

/** Special-purpose addresses (RFC 6890 and its registries), and those where clouds serve secrets to their machines. */
const refused = [
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16 169.254.0.0/16 172.16.0.0/12',
  '192.0.0.0/24 192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
  '224.0.0.0/4 240.0.0.0/4',
  // Also those that translate to IPv4 in other ways than `translated`.
  '::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16',
  'fc00::/7 fe80::/10 fec0::/10 ff00::/8',
].flatMap((line) => line.split(' '))

/** Networks that hold IPv4 addresses in their last 32 bits: IPv4-mapped (RFC 4291) and NAT64 (RFC 6052). */
const translated = ['::ffff:0:0/96', '64:ff9b::/96']

/** Whether a webhook may not be delivered to an address: it is ours, or one that only this machine or network can reach. */
export function isRefused(text: string, allowed: readonly string[]): boolean {
  const address = withoutZone(text)
  const reached = isInNetworks(address, translated) ? ipv4In(address) : address
  if (isInNetworks(address, allowed) || isInNetworks(reached, allowed)) return false
  const own = Object.values(networkInterfaces()).flat()
  return isInNetworks(reached, [...refused, ...own.map((each) => withoutZone(each?.address ?? ''))])
}

const withoutZone = (address: string) => address.replace(/%.*/, '')

/** The IPv4 address in the last 32 bits, which are hexadecimal in URLs. */
function ipv4In(address: string): string {
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
