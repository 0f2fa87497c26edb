import { Problem, problemOf } from '@domains-and-files/http'
import { z } from 'zod'
import { toRecord } from '../dns/record.ts'
import { type ChangeZones, changeStatuses, type StoredChange } from '../ledger/ledger.ts'
import { fromStoredProblem } from '../zones/stored-problem.ts'
import { historyEntry, storedChange } from './openapi-examples.ts'
import { HostRecord } from './zone-schema.ts'

const ChangeSummary = z
  .object({
    added: z.array(HostRecord),
    removed: z.array(HostRecord),
    kept: z.int().meta({ description: 'records that the change left as they were' }),
    omitted: z.object({ added: z.int(), removed: z.int() }).optional().meta({
      description: 'in lists: records of large changes that are not shown; read the change itself',
    }),
  })
  .meta({ id: 'ChangeSummary' })

const entry = {
  id: z.int(),
  at: z.iso.datetime(),
  by: z.string().meta({ description: 'a username, or domain-service for a repaired late write' }),
  token: z.string().optional().meta({ description: 'name of the API token that was used' }),
  request_id: z.string().meta({ description: 'the x-request-id of the write' }),
  status: z.enum(changeStatuses).meta({
    description:
      'confirmed: done. unconfirmed: sent, but the zone is unknown or differs. refused: not done, see problem. sending, queued: not done yet. cancelled: never sent',
  }),
  reason: z.string().optional().meta({ description: 'late_write: the service restored the zone' }),
  verified: z
    .literal(false)
    .optional()
    .meta({ description: 'the zone could not be read back yet' }),
  warnings: z.array(z.string()).optional(),
  problem: Problem.optional().meta({ description: 'why the change was refused or is unconfirmed' }),
}

export const HistoryEntry = z
  .object({
    ...entry,
    changes: ChangeSummary,
    email_type_before: z.string().nullable(),
    email_type_after: z.string().nullable(),
  })
  .meta({ id: 'HistoryEntry', examples: [historyEntry] })

export const Change = z
  .object({
    ...entry,
    domain: z.string(),
    sent_at: z.iso.datetime().nullable(),
    ended_at: z.iso.datetime().nullable(),
    changes: ChangeSummary.nullable().meta({ description: 'null until the change was evaluated' }),
  })
  .meta({ id: 'Change', examples: [storedChange] })

const describeCommon = (change: StoredChange) => ({
  id: change.id,
  by: change.by,
  ...(change.token === undefined ? {} : { token: change.token }),
  request_id: change.requestId,
  status: change.status,
  ...(change.reason === undefined ? {} : { reason: change.reason }),
  ...(change.status === 'confirmed' && !change.verified ? { verified: false as const } : {}),
  ...(change.warnings.length > 0 ? { warnings: change.warnings } : {}),
  ...(change.problem ? { problem: describeProblem(change) } : {}),
})

function describeProblem({ problem, requestId }: StoredChange) {
  const { status = 500, code = 'internal_error', detail = '', errors } = problem ?? {}
  return problemOf(fromStoredProblem({ status, code, detail, errors }), requestId)
}

/** A change of one domain's history. `zones` gives all of its records; a list has only its summary. */
export const describeEntry = (change: StoredChange, zones?: ChangeZones) => ({
  ...describeCommon(change),
  at: (change.sentAt ?? change.createdAt).toISOString(),
  changes: describeRecords(change, zones) ?? { added: [], removed: [], kept: 0 },
  email_type_before: change.emailTypeBefore ?? null,
  email_type_after: change.emailTypeAfter ?? null,
})

/** A change of any domain, with its times. */
export const describeChange = (change: StoredChange, zones?: ChangeZones) => ({
  ...describeCommon(change),
  domain: change.domain,
  at: change.createdAt.toISOString(),
  sent_at: change.sentAt?.toISOString() ?? null,
  ended_at: change.endedAt?.toISOString() ?? null,
  changes: describeRecords(change, zones),
})

function describeRecords({ summary, domain }: StoredChange, zones: ChangeZones | undefined) {
  if (!summary) return null
  if (!zones) return summary
  const records = (rows: ChangeZones['added']) => rows.map((row) => toRecord(row, domain))
  return { added: records(zones.added), removed: records(zones.removed), kept: summary.kept }
}
