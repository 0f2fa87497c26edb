import type { Rights } from '@domains-and-files/auth'
import { Problem, problemOf } from '@domains-and-files/http'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { changesOf, etagOf } from '../dns/zone.ts'
import { type ChangeZones, changeStatuses, fromStoredProblem, type StoredChange } from '../ledger/ledger.ts'
import { change } from './openapi-examples.ts'
import { Changes, visibleChanges, visibleError, visibleWarnings } from './zone/zone-schema.ts'

const ChangeSummary = Changes.extend({
  omitted: z
    .object({ added: z.int(), removed: z.int() })
    .optional()
    .describe('in lists: records of large changes that are not shown; read the change itself'),
}).meta({ id: 'ChangeSummary' })

/** Of a zone; null: unknown. */
export const RecordedEmailType = z.nullable(z.string()).meta({ examples: ['NONE'] })

export const Change = z
  .object({
    id: z.int(),
    at: z.iso.datetime(),
    created_at: z.iso.datetime().describe('when the change was requested'),
    by: z.nullable(z.string()).meta({
      description: 'a username, or domain-service for a repaired late write; null: changed outside',
      examples: [change.by],
    }),
    token: z.string().optional().describe('name of the API token that was used'),
    request_id: z.string().meta({ description: 'the x-request-id of the write', examples: [change.request_id] }),
    approved_by: z.string().optional().describe('who approved it'),
    seen_since: z.iso.datetime().optional().describe('made outside: when the zone was last seen without it'),
    status: z.enum(changeStatuses).meta({
      description:
        'confirmed: done. unconfirmed: sent, but the zone is unknown or differs. refused: not done, see problem. sending, queued: not done yet. cancelled: never sent. proposed: waits for an approval. rejected: not approved',
      examples: [change.status],
    }),
    reason: z
      .string()
      .optional()
      .describe(
        'outside: not made through this service. late_write: the service restored the zone. superseded: a later change made it pointless. expired: nobody approved it in 14 days. Of a rejected change: the words of the rejecter',
      ),
    held: z.literal(true).optional().describe('queued in a backup that was restored: waits for an admin'),
    verified: z.literal(false).optional().describe('the zone could not be read back yet'),
    warnings: z.array(z.string()).optional(),
    problem: Problem.optional().describe('why the change was refused or is unconfirmed'),
    domain: z.string(),
    sent_at: z.iso.datetime().nullable(),
    ended_at: z.iso.datetime().nullable(),
    changes: ChangeSummary.nullable().describe('null until the change was evaluated'),
    etag: z.string().optional().describe('of a proposed change: the ETag of the zone that it was evaluated on'),
  })
  .meta({ id: 'Change', examples: [change] })

export const HistoryEntry = Change.extend({
  changes: ChangeSummary,
  email_type_before: RecordedEmailType,
  email_type_after: RecordedEmailType,
}).meta({ id: 'HistoryEntry' })

/** Without `zones`, the summary of the change is shown. */
type Reader = { caller: Rights; zones?: ChangeZones | undefined }

const instantOf = (milliseconds: number | null) =>
  milliseconds === null ? undefined : new Date(milliseconds).toISOString()

/** A change of any domain. What is undefined is not in the JSON. */
export function describeChange(change: StoredChange, { caller, zones }: Reader) {
  const { status, summary } = change
  const created_at = new Date(change.created_at).toISOString()
  const warnings = visibleWarnings(change.warnings, caller)
  const problem = change.problem && visibleError(fromStoredProblem(change.problem), caller)
  const changes = zones && summary ? { ...changesOf(zones), kept: summary.kept } : summary
  return {
    id: change.id,
    domain: change.domain,
    at: created_at,
    created_at,
    sent_at: instantOf(change.sent_at) ?? null,
    ended_at: instantOf(change.ended_at) ?? null,
    by: change.by || null,
    token: change.token ?? undefined,
    approved_by: change.approved_by ?? undefined,
    seen_since: instantOf(change.seen_since),
    request_id: change.request_id,
    status,
    reason: change.reason ?? undefined,
    held: change.is_held && status === 'queued' ? (true as const) : undefined,
    verified: status === 'confirmed' && !change.verified ? (false as const) : undefined,
    warnings: warnings.length > 0 ? warnings : undefined,
    problem: problem && problemOf(problem, change.request_id),
    changes: changes ? visibleChanges(changes, caller) : null,
    etag: status === 'proposed' && zones ? etagOf(zones.before) : undefined,
  }
}

/** A change in the history of its domain. */
export function describeEntry(change: StoredChange, reader: Reader) {
  const described = describeChange(change, reader)
  return {
    ...described,
    at: described.sent_at ?? described.at,
    changes: described.changes ?? { added: [], removed: [], kept: 0 },
    email_type_before: change.email_type_before,
    email_type_after: change.email_type_after,
  }
}

/** Tells when to look again at a change that has not ended: a batch takes seconds, and waits for the registrar's limits. */
export function setRetryAfter(reply: FastifyReply, { status }: StoredChange) {
  if (status === 'queued' || status === 'sending') reply.header('retry-after', 5)
}
