import {
  join,
  list,
  name,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { changeNotFound } from '../errors.ts'
import type {
  ChangeFilter,
  ChangeRequest,
  ChangeStatus,
  ChangeSummary,
  StoredChange,
  StoredProblem,
  Warning,
} from './change.ts'

/** The columns that a list reads: none of them is large. */
export const listedColumns = sql`id, domain, status, by, token, caller, request_id, reason, approved_by, seen_since, is_async, is_held,
  verified, created_at, sent_at, ended_at, email_type_before, email_type_after, warnings, problem, summary`

export interface ChangeRow {
  id: number
  domain: string
  status: ChangeStatus
  by: string
  token: string | null
  caller: string
  request_id: string
  reason: string | null
  approved_by: string | null
  seen_since: number | null
  is_async: number
  is_held: number
  verified: number
  created_at: number
  sent_at: number | null
  ended_at: number | null
  email_type_before: string | null
  email_type_after: string | null
  warnings: string
  problem: string | null
  summary: string | null
}

// The texts are JSON that this ledger wrote, so their shapes are known.
export const toStoredChange = (row: ChangeRow): StoredChange => ({
  id: row.id,
  domain: row.domain,
  status: row.status,
  by: row.by || null,
  token: row.token ?? undefined,
  callerId: row.caller,
  requestId: row.request_id,
  reason: row.reason ?? undefined,
  approvedBy: row.approved_by ?? undefined,
  seenSince: dateOf(row.seen_since),
  createdAt: new Date(row.created_at),
  sentAt: dateOf(row.sent_at),
  endedAt: dateOf(row.ended_at),
  isAsync: row.is_async === 1,
  isHeld: row.is_held === 1,
  verified: row.verified === 1,
  summary: row.summary === null ? undefined : (JSON.parse(row.summary) as ChangeSummary),
  emailTypeBefore: row.email_type_before ?? undefined,
  emailTypeAfter: row.email_type_after ?? undefined,
  warnings: JSON.parse(row.warnings) as Warning[],
  problem: row.problem === null ? undefined : (JSON.parse(row.problem) as StoredProblem),
})

const dateOf = (milliseconds: number | null) =>
  milliseconds === null ? undefined : new Date(milliseconds)

/** @throws 404 `change_not_found` */
export async function readChange(reader: SqlTransaction, id: number): Promise<StoredChange> {
  const row = await reader.get<ChangeRow>(
    sql`select ${listedColumns} from ${name('changes')} where id = ${id}`,
  )
  if (!row) throw changeNotFound(id)
  return toStoredChange(row)
}

/** Who is the author of a change, for its idempotency key and for the limit of queued changes. */
export const callerIdOf = ({ callerId, by }: Pick<ChangeRequest, 'callerId' | 'by'>) =>
  callerId ?? by

/** The condition of a list. */
export function conditionOf(filter: ChangeFilter): Statement {
  const { domain, by, status, since, sentOnly, domains, before } = filter
  const conditions = [
    ...(domain === undefined ? [] : [sql`domain = ${domain}`]),
    ...(by === undefined ? [] : [sql`by = ${by}`]),
    ...(status === undefined ? [] : [sql`status = ${status}`]),
    ...(since === undefined ? [] : [sql`created_at >= ${since.getTime()}`]),
    ...(sentOnly ? [sql`sent_at is not null`] : []),
    ...(before === undefined ? [] : [sql`id < ${before}`]),
    ...(domains === undefined ? [] : [isVisible(domains)]),
  ]
  return conditions.length === 0 ? sql`` : sql`where ${join(conditions, ' and ')}`
}

function isVisible(patterns: string[]): Statement {
  const names = patterns.filter((pattern) => !pattern.startsWith('*'))
  const suffixes = patterns
    .filter((pattern) => pattern.startsWith('*.'))
    .map((pattern) => pattern.slice(1))
  const ends = suffixes.map(
    (suffix) => sql`substr(domain, length(domain) - ${suffix.length - 1}) = ${suffix}`,
  )
  return sql`(${join([sql`domain in (${list(names)})`, ...ends], ' or ')})`
}
