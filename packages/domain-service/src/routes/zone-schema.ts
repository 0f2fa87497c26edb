import { z } from 'zod'
import { emailTypes } from '../dns/email-type.ts'
import { recordTypes, toRecords, type Zone } from '../dns/record.ts'
import type { WriteResult } from '../zones/write-batch.ts'
import { changes, zone as exampleZone, record } from './openapi-examples.ts'

// A zone, and what became of it, as callers see them.

export const HostRecord = z
  .object({
    id: z.string().meta({ description: '12 hex digits, from name, type, address and mx_pref' }),
    name: z.string().meta({ description: '@ for the domain itself', examples: ['www'] }),
    type: z
      .string()
      .meta({ description: `one of ${recordTypes.join(', ')}; others can be read, not written` }),
    address: z.string().meta({ examples: ['192.0.2.10'] }),
    ttl: z.int().meta({ description: 'seconds' }),
    mx_pref: z.int().optional().meta({ description: 'MX records only' }),
  })
  .meta({ id: 'HostRecord', examples: [record] })

export const Changes = z
  .object({
    added: z.array(HostRecord),
    removed: z.array(HostRecord),
    kept: z.int().meta({ description: 'how many were left as they were' }),
  })
  .meta({ id: 'Changes', examples: [changes] })

export const ZoneAnswer = z
  .object({
    domain: z.string(),
    uses_registrar_dns: z
      .boolean()
      .meta({ description: 'false: other nameservers answer, and nothing can be written here' }),
    email_type: z
      .string()
      .nullable()
      .meta({ description: `who takes the domain's mail: ${emailTypes.join(', ')}` }),
    hosts: z.array(HostRecord).meta({ description: 'by name (@ first), type and address' }),
  })
  .meta({ id: 'Zone', examples: [exampleZone] })

export const WrittenAnswer = ZoneAnswer.extend({
  dry_run: z.literal(true).optional().meta({ description: 'nothing was written' }),
  changes: Changes,
  warnings: z.array(z.string()).meta({ description: 'what a write could not keep' }),
}).meta({ id: 'WrittenZone', examples: [{ ...exampleZone, changes, warnings: [] }] })

export const AddedAnswer = HostRecord.extend({
  dry_run: z.literal(true).optional().meta({ description: 'nothing was written' }),
  warnings: z
    .array(z.string())
    .optional()
    .meta({ description: 'what the write could not keep; absent: nothing' }),
}).meta({ id: 'AddedRecord', examples: [record] })

export const describeZone = (zone: Zone) => ({
  domain: zone.domain,
  uses_registrar_dns: zone.usesRegistrarDns,
  email_type: zone.emailType ?? null,
  hosts: toRecords(zone),
})

export function describeWrite(
  { zone, added, removed, kept, warnings }: WriteResult,
  dryRun: boolean,
) {
  const mark = dryRun ? { dry_run: true as const } : {}
  return { ...describeZone(zone), ...mark, changes: { added, removed, kept }, warnings }
}
