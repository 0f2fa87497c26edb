import type {
  ChangeRequest,
  ChangeStatus,
  ChangeSummary,
  StoredChange,
  StoredProblem,
} from './ledger.ts'

/** The columns that a list reads: none of them is large. */
export const listedColumns = `id, domain, status, by, token, request_id, reason, is_async, verified, created_at, sent_at,
  ended_at, email_type_before, email_type_after, warnings, problem, summary`

export interface ChangeRow {
  id: number
  domain: string
  status: ChangeStatus
  by: string
  token: string | null
  request_id: string
  reason: string | null
  is_async: number
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
  by: row.by,
  token: row.token ?? undefined,
  requestId: row.request_id,
  reason: row.reason ?? undefined,
  createdAt: new Date(row.created_at),
  sentAt: dateOf(row.sent_at),
  endedAt: dateOf(row.ended_at),
  isAsync: row.is_async === 1,
  verified: row.verified === 1,
  summary: row.summary === null ? undefined : (JSON.parse(row.summary) as ChangeSummary),
  emailTypeBefore: row.email_type_before ?? undefined,
  emailTypeAfter: row.email_type_after ?? undefined,
  warnings: JSON.parse(row.warnings) as string[],
  problem: row.problem === null ? undefined : (JSON.parse(row.problem) as StoredProblem),
})

const dateOf = (milliseconds: number | null) =>
  milliseconds === null ? undefined : new Date(milliseconds)

/** The columns of a change that its request determines. */
export const requestColumns = (request: ChangeRequest) => ({
  domain: request.domain,
  by: request.by,
  token: request.token ?? null,
  request_id: request.requestId,
  reason: request.reason ?? null,
  idempotency_key: request.idempotency?.key ?? null,
  fingerprint: request.idempotency?.fingerprint ?? null,
  request: JSON.stringify(request),
})
