import { appendEvents, ofTypes, type StoredEvent } from '@domains-and-files/events'
import {
  forUpdate,
  join,
  list,
  name,
  type Sql,
  type SqlTransaction,
  type Statement,
  sql,
} from '@domains-and-files/persistence'
import { changeNotFound } from '../errors.ts'
import type { ChangeFilter, ChangeStatus, ChangeSummary, StoredProblem, Warning } from './change.ts'

/** SQLite uses a partial index only if the query repeats its condition. */
export const isPending = sql`status in ('queued', 'sending')`

/** None of them is large. */
export const listedColumns = sql`id, domain, status, by, token, caller, request_id, reason, approved_by, seen_since, is_async, is_held,
  verified, created_at, sent_at, ended_at, email_type_before, email_type_after, warnings, problem, summary`

/** A row of `changes`, as lists and events have it; times are milliseconds since 1970. */
export interface ChangeRow {
  id: number
  domain: string
  status: ChangeStatus
  /** Empty: the change was made outside this service. */
  by: string
  token: string | null
  /** Id of the user or of the token. */
  caller: string
  request_id: string
  reason: string | null
  approved_by: string | null
  /** When the zone was last seen without a change that was made outside. */
  seen_since: number | null
  is_async: number
  /** Queued in a backup that was restored: it waits for an admin. */
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

/** The row with its JSON parsed: texts that this ledger wrote. */
export type StoredChange = ReturnType<typeof toStoredChange>

export const toStoredChange = ({ warnings, problem, summary, ...row }: ChangeRow) => ({
  ...row,
  warnings: JSON.parse(warnings) as Warning[],
  problem: problem === null ? undefined : (JSON.parse(problem) as StoredProblem),
  summary: summary === null ? undefined : (JSON.parse(summary) as ChangeSummary),
})

/** @throws 404 `change_not_found` */
export async function readChange(reader: SqlTransaction, id: number): Promise<StoredChange> {
  const row = await reader.get<ChangeRow>(sql`select ${listedColumns} from ${name('changes')} where id = ${id}`)
  if (!row) throw changeNotFound(id)
  return toStoredChange(row)
}

export function conditionOf(filter: ChangeFilter, follows: Statement[] = []): Statement {
  const { domain, by, status, requestId, since, sentOnly, domains } = filter
  const conditions = [
    ...(domain === undefined ? [] : [sql`domain = ${domain}`]),
    ...(by === undefined ? [] : [sql`by = ${by}`]),
    ...(status === undefined ? [] : [sql`status = ${status}`]),
    ...(requestId === undefined ? [] : [sql`request_id = ${requestId}`]),
    ...(since === undefined ? [] : [sql`created_at >= ${since.getTime()}`]),
    ...(sentOnly ? [sql`sent_at is not null`] : []),
    ...follows,
    ...(domains === undefined ? [] : [isVisible(domains)]),
  ]
  return conditions.length === 0 ? sql`` : sql`where ${join(conditions, ' and ')}`
}

/** The condition of a reader who is limited to these domains and `*.` patterns. */
export function isVisible(patterns: string[]): Statement {
  const names = patterns.filter((pattern) => !pattern.startsWith('*'))
  const suffixes = patterns.filter((pattern) => pattern.startsWith('*.')).map((pattern) => pattern.slice(1))
  const ends = suffixes.map((suffix) => sql`substr(domain, length(domain) - ${suffix.length - 1}) = ${suffix}`)
  return sql`(${join([sql`domain in (${list(names)})`, ...ends], ' or ')})`
}

/** Types of events about a change; their data is the row of the change. */
export const changeEvents = [
  'zone.changed',
  'zone.changed_outside',
  'change.proposed',
  'change.refused',
  'change.unconfirmed',
] as const

/** The change that an event is about, as it was then. */
export const changeOf = ({ data }: StoredEvent) => toStoredChange(data as ChangeRow) // As `appendChangeEvents` stored it.

export const registrarEvents = ['registrar.failing', 'registrar.recovered'] as const

/** Unless the last such event says the same: each replica has its own circuit breaker. */
export async function recordRegistrarEvent(
  database: Sql,
  { registrar, isFailing }: { registrar: string; isFailing: boolean },
): Promise<void> {
  const [failing, recovered] = registrarEvents
  await database.transaction(async (transaction) => {
    await transaction.get(sql`select last from ${name('event_sequence')} ${forUpdate}`)
    const last = await transaction.get<{ type: string }>(sql`select type from ${name('events')}
      where ${ofTypes(registrarEvents)} order by id desc limit 1`)
    const type = isFailing ? failing : recovered
    if ((last?.type ?? recovered) !== type) await appendEvents(transaction, [{ type, data: { registrar } }])
  })
}
