import { type Caller, mayReadRrset, type Rights } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import { z } from 'zod'
import type { NamedRrset } from '../../dns/record.ts'
import { recordTypes } from '../../dns/record-types.ts'
import { changesOf, emailTypes, toRecords, type Zone } from '../../dns/zone.ts'
import type { ChangeSummary, Warning } from '../../ledger/ledger.ts'
import type { WriteResult } from '../../zones/batch/evaluate-write.ts'
import { domain, record } from '../openapi-examples.ts'

export const HostRecord = z
  .object({
    id: z.string().meta({ description: '12 hex digits, from name, type, address and mx_pref', examples: [record.id] }),
    name: z.string().meta({ description: '@ for the domain itself', examples: [record.name] }),
    type: z.string().meta({
      description: `one of ${recordTypes.join(', ')}; others can be read, not written`,
      examples: [record.type],
    }),
    address: z.string().meta({ examples: [record.address] }),
    ttl: z.int().meta({ description: 'seconds', examples: [record.ttl] }),
    mx_pref: z.int().optional().describe('MX records only'),
  })
  .meta({ id: 'HostRecord' })

export const Changes = z
  .object({
    added: z.array(HostRecord),
    removed: z.array(HostRecord).meta({ examples: [[]] }),
    kept: z.int().meta({ description: 'records that stayed as they were', examples: [0] }),
  })
  .meta({ id: 'Changes' })

export const ZoneAnswer = z
  .object({
    domain: z.string().meta({ examples: [domain] }),
    uses_registrar_dns: z.boolean().describe('false: it uses other nameservers, and cannot be written here'),
    email_type: z.nullable(z.string()).meta({
      description: `how the domain receives mail: ${emailTypes.join(', ')}; null: unknown`,
      examples: ['NONE'],
    }),
    hosts: z.array(HostRecord).describe('by name (@ first), type and address'),
  })
  .meta({ id: 'Zone' })

const dry_run = z.literal(true).optional().describe('nothing was written')
const verified = z.literal(false).optional().describe('not read back yet: GET /api/changes tells the outcome')

const warnings = z
  .array(z.string())
  .meta({ description: 'what the write lost, and what to know of it', examples: [[]] })

export const WrittenAnswer = ZoneAnswer.extend({ dry_run, verified, changes: Changes, warnings }).meta({
  id: 'WrittenZone',
})

/** The fields beside the record or RRset in the response to a write of it. */
export const outcomeFields = { dry_run, verified, warnings: warnings.optional() }

export const AddedAnswer = HostRecord.extend(outcomeFields).meta({ id: 'AddedRecord' })

/** A zone as JSON, without the records that the caller may not read. Callers who may read all share one object. */
export function describeZone(zone: Zone, caller?: Rights) {
  const records = toRecords(zone)
  const describe = (hosts: typeof records): z.infer<typeof ZoneAnswer> => ({
    domain: zone.domain,
    uses_registrar_dns: zone.usesRegistrarDns,
    email_type: zone.emailType ?? null,
    hosts,
  })
  if (caller && isRecordLimited(caller)) return describe(visibleRecords(records, caller))
  return described.getOrInsertComputed(zone, () => describe(records))
}

const described = new WeakMap<Zone, z.infer<typeof ZoneAnswer>>()

/**
 * A serializer for answers that are the same object each time: the JSON of a cached zone is made once. It checks no
 * schema: the type of the handler does.
 */
export const serializeOnce = () => (answer: unknown) => serialized.getOrInsertComputed(Object(answer), JSON.stringify)

const serialized = new WeakMap<object, string>()

/** The caller that gets the outcome of a write, and whether it was a dry run. */
export interface Answering {
  caller: Caller
  dryRun: boolean
}

/** The zone after a write, and what changed, without the records that the caller may not read. */
export const describeWrite = (result: WriteResult, answering: Answering) => ({
  ...describePart(describeZone(result.zone, answering.caller), result, answering),
  changes: visibleChanges(changesOf(result), answering.caller),
  warnings: visibleWarnings(result.warnings, answering.caller),
})

/** One record or RRset after a write of it. Marks a dry run, and a write that is not verified yet. */
export function describePart<Part>(part: Part, { verified, warnings }: WriteResult, { dryRun, caller }: Answering) {
  const visible = visibleWarnings(warnings, caller)
  return {
    ...part,
    ...(dryRun ? { dry_run: true as const } : {}),
    ...(verified ? {} : { verified: false as const }),
    ...(visible.length > 0 ? { warnings: visible } : {}),
  }
}

// A token that is limited to some records learns nothing of the others.

/** Whether this caller may not read all records of a zone. */
const isRecordLimited = ({ records, readsAll }: Rights) => records !== undefined && !readsAll

export const visibleRecords = <Named extends NamedRrset>(records: Named[], caller: Rights): Named[] =>
  isRecordLimited(caller) ? records.filter(({ name, type }) => mayReadRrset(caller, name, type)) : records

export const visibleChanges = <Summary extends ChangeSummary>(changes: Summary, caller: Rights): Summary => ({
  ...changes,
  added: visibleRecords(changes.added, caller),
  removed: visibleRecords(changes.removed, caller),
})

/** The texts of warnings, without those about records that the caller may not read. */
export const visibleWarnings = (warnings: Warning[], caller: Rights): string[] =>
  warnings.flatMap((warning) =>
    typeof warning === 'string' ? warning : visibleRecords([warning.rrset], caller).map(() => warning.text),
  )

const revealing = new Set([
  'record_exists',
  'record_conflict',
  'unsupported_records',
  'write_not_confirmed',
  'revert_conflict',
  'email_type_conflict',
  'too_many_records',
  'registrar_rejected',
  'registrar_error',
  'registrar_bad_answer',
])

/** An error as this caller may see it: some details name records, or quote the registrar, which gets all records. */
export function visibleError<Failure>(error: Failure, caller: Rights): Failure | HttpError {
  if (!(error instanceof HttpError) || !isRecordLimited(caller) || !revealing.has(error.code)) return error
  const { status, code, errors, headers } = error
  const detail =
    'The reason concerns records that this token may not read, or is in the words of the registrar: ask its owner'
  return new HttpError(status, code, detail, { headers, cause: error, errors })
}
