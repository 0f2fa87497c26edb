import { z } from 'zod'
import type { RecordInput } from '../dns/record.ts'
import { recordTypeOf, recordTypes } from '../dns/record-types.ts'
import type { Rrset } from '../dns/zone.ts'
import { anyCase } from './json-protocol.ts'

/** An endpoint of external-dns with all its fields, known here or not. */
export type Endpoint = z.infer<typeof Endpoint>

const Endpoint = z.looseObject({
  dnsName: z.string('must be a string'),
  targets: z.array(z.string(), 'must be a list of strings').nullish(),
  recordType: z.string('must be a string'),
  recordTTL: z.number().nullish(),
})

export const Endpoints = z.array(anyCase(Endpoint))

const Optional = Endpoints.nullish().transform((endpoints) => endpoints ?? [])

/** The changes of a plan; absent and null lists are empty. */
export const Changes = anyCase(
  z.object({ create: Optional, updateOld: Optional, updateNew: Optional, delete: Optional }),
)

export type Changes = z.infer<typeof Changes>

/** Types that DNS has, too. */
export const endpointTypes = recordTypes.filter((type) => recordTypeOf(type).print)

/** The endpoint of an RRset. */
export const toEndpoint = (rrset: Rrset, domain: string): Endpoint => ({
  dnsName: rrset.name === '@' ? domain : `${rrset.name}.${domain}`,
  targets: rrset.values,
  recordType: rrset.type,
  recordTTL: rrset.ttl,
})

/** An endpoint as the registrar would store it; fields that mean nothing here stay as they are. */
export function adjustEndpoint(endpoint: Endpoint): Endpoint {
  const { dnsName, recordType, targets, recordTTL } = endpoint
  return {
    ...endpoint,
    dnsName: withoutDot(dnsName.toLowerCase()),
    ...(targets ? { targets: targets.map((target) => adjustTarget(recordType, target)) } : {}),
    ...(recordTTL ? { recordTTL: boundTtl(recordTTL) } : {}),
  }
}

/** The records of an endpoint, their names relative to its domain. */
export function toRecords(endpoint: Endpoint, name: string): RecordInput[] {
  const { recordType: type, targets, recordTTL } = adjustEndpoint(endpoint)
  const ttl = recordTTL ? { ttl: recordTTL } : {}
  return (targets ?? []).map((target) => {
    const [, preference, address] =
      type.toUpperCase() === 'MX' ? (/^([0-9]{1,5})\s+(\S+)$/.exec(target) ?? []) : []
    return preference && address
      ? { name, type, address, mx_pref: Number(preference), ...ttl }
      : { name, type, address: target, ...ttl }
  })
}

function adjustTarget(type: string, target: string): string {
  // Its registry writes TXT with the quotes of a zone file.
  if (type.toUpperCase() === 'TXT') return /^"[^"]*"$/.test(target) ? target.slice(1, -1) : target
  return recordTypeOf(type.toUpperCase()).canonicalize(target)
}

const boundTtl = (ttl: number) => Math.min(Math.max(Math.round(ttl), 60), 60_000)

const withoutDot = (name: string) => name.replace(/\.$/, '')
