import { BlockList, isIP } from 'node:net'
import { z } from 'zod'

/** An IPv4 or IPv6 network such as `192.0.2.0/24`, or one address. */
export const Network = z
  .string()
  .trim()
  .refine((text) => readNetwork(text) !== undefined, 'must be a network such as 192.0.2.0/24')

/** Whether an address is in one of these networks. IPv4-mapped IPv6 addresses count as IPv4. */
export function isInNetworks(address: string, networks: readonly string[]): boolean {
  const plain = address.replace(/^::ffff:(?=[0-9.]+$)/i, '')
  const version = isIP(plain)
  if (version === 0) return false
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  for (const network of networks.flatMap((text) => readNetwork(text) ?? [])) {
    // BlockList would match an IPv4 address with ::/0.
    if (network.family === family) list.addSubnet(network.address, network.length, family)
  }
  return list.check(plain, family)
}

function readNetwork(text: string) {
  const [, address = '', bits] = /^([^/%]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? []
  const version = isIP(address)
  if (version === 0) return undefined
  const max = version === 4 ? 32 : 128
  const length = bits === undefined ? max : Number(bits)
  const family = version === 4 ? ('ipv4' as const) : ('ipv6' as const)
  return length <= max ? { address, length, family } : undefined
}
