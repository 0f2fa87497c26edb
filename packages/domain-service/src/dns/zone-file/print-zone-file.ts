import { HttpError } from '@domains-and-files/http'
import { defaultTtl, type HostRecord, toRecords, type Zone } from '../record.ts'
import { recordTypeOf } from '../record-types.ts'
import { toRow } from '../record-validation.ts'
import { annotateEmailType, annotateRecord } from './annotation.ts'
import { parseZoneFile } from './parse-zone-file.ts'

/**
 * A zone as a zone file (RFC 1035), pure ASCII. Records that DNS cannot express are comments; parsed again, the file
 * gives the same records and email type. It has no SOA and no NS of the domain itself: the registrar shows neither.
 */
export function printZoneFile(zone: Zone): string {
  const records = toRecords(zone)
  const lines = records.map((record) => ({ record, line: printRecord(record, zone.domain) }))
  const others = lines.filter(({ line }) => line === undefined)
  return [
    `; ${zone.domain}, without SOA and NS of the domain itself.`,
    '; "domain-service" comments are settings and records that DNS does not have.',
    `$ORIGIN ${zone.domain}.`,
    `$TTL ${defaultTtl}`,
    ...[annotateEmailType(zone.emailType ?? '') ?? []].flat(),
    ...lines.flatMap(({ line }) => line ?? []),
    ...others.map(({ record }) => annotateRecord(record)),
    '',
  ].join('\n')
}

// Undefined where DNS has no such record, or would not give it back as it is.
function printRecord(record: HostRecord, domain: string): string | undefined {
  const rdata = recordTypeOf(record.type).print?.(record)
  if (rdata === undefined) return undefined
  const { faults } = toRow(record, domain)
  if (faults.some(([field]) => field !== 'ttl')) return undefined
  const line = `${record.name}\t${record.ttl}\tIN\t${record.type}\t${rdata}`
  return isFaithful(line, record, domain) ? line : undefined
}

function isFaithful(line: string, record: HostRecord, domain: string): boolean {
  try {
    const [parsed] = parseZoneFile(line, domain).records
    const { id, ...expected } = record
    return JSON.stringify(sorted(parsed)) === JSON.stringify(sorted(expected))
  } catch (error) {
    if (error instanceof HttpError) return false
    throw error
  }
}

const sorted = (record: object | undefined) => Object.entries(record ?? {}).sort()
