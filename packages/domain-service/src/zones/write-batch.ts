import { includesTag, readIfMatch } from '@domains-and-files/http'
import { applyEdit } from '../dns/edits/apply-edit.ts'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import {
  etagOf,
  type HostRecord,
  isWritable,
  type Row,
  subtract,
  toRecord,
  type Zone,
} from '../dns/record.ts'
import { dnsNotManaged, preconditionFailed, unsupportedRecords } from '../errors.ts'
import type { WriteOutcome } from './verified-write.ts'

export interface ZoneWrite {
  edit: ZoneEdit
  ifMatch: string | undefined
  dryRun: boolean
  /** Goes on where records would be lost that the registrar cannot be sent. */
  force: boolean
  by: string
  requestId: string
}

/** What is asked for when only the zone as it should be is wanted. */
export const nothing: ZoneWrite = {
  edit: { kind: 'ensure', present: [], absent: [] },
  ifMatch: undefined,
  dryRun: false,
  force: false,
  by: 'domain-service',
  requestId: 'late-write',
}

export interface WriteResult {
  zone: Zone
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  warnings: string[]
}

export interface QueuedWrite {
  request: ZoneWrite
  resolve: (written: WriteResult) => void
  reject: (error: unknown) => void
}

/** What a waiting request came to, before it is known whether the write succeeds. */
export interface EvaluatedWrite {
  waiting: QueuedWrite
  before: Zone
  after: Zone
  written?: WriteResult
  error?: unknown
}

/** Works a request out against the zone as its turn finds it; its own failure leaves the others alone. */
export function evaluateWrite(waiting: QueuedWrite, before: Zone): EvaluatedWrite {
  const { request } = waiting
  try {
    if (
      request.ifMatch !== undefined &&
      !includesTag(readIfMatch(request.ifMatch), etagOf(before))
    ) {
      throw preconditionFailed(etagOf(before))
    }
    if (!before.usesRegistrarDns) throw dnsNotManaged(before.domain)
    return { waiting, before, ...work(request, before) }
  } catch (error) {
    return { waiting, before, after: before, error }
  }
}

function work(request: ZoneWrite, before: Zone): { after: Zone; written: WriteResult } {
  const wanted = applyEdit(before, request.edit)
  const { domain } = before
  const isSame =
    wanted.emailType === before.emailType &&
    wanted.rows.length === before.rows.length &&
    subtract(wanted.rows, before.rows, domain).length === 0
  if (isSame) {
    const written = { zone: before, added: [], removed: [], kept: before.rows.length, warnings: [] }
    return { after: before, written }
  }

  const lost = [...before.rows, ...wanted.rows].filter((row) => !isWritable(row.type.toUpperCase()))
  if (lost.length > 0 && !request.force) {
    throw unsupportedRecords([...new Set(lost)].map((row) => toRecord(row, domain)))
  }
  const after = { ...wanted, rows: wanted.rows.filter((row) => isWritable(row.type.toUpperCase())) }
  const removed = subtract(before.rows, after.rows, domain)
  const added = subtract(after.rows, before.rows, domain)
  const written = {
    zone: after,
    added: added.map((row) => toRecord(row, domain)),
    removed: removed.map((row) => toRecord(row, domain)),
    kept: after.rows.length - added.length,
    warnings: warn(before, after),
  }
  return { after, written }
}

function warn(before: Zone, after: Zone): string[] {
  const tell = (zone: Zone, row: Zone['rows'][number]) => {
    const { name, type, address } = toRecord(row, zone.domain)
    return `${name} ${type} ${address}`
  }
  return [
    ...before.rows.flatMap((row) =>
      isWritable(row.type.toUpperCase())
        ? []
        : `${tell(before, row)} was removed: the registrar cannot be sent its type`,
    ),
    ...after.rows.flatMap((row) =>
      row.dynamic ? `${tell(after, row)} loses its dynamic-DNS flag` : [],
    ),
    ...(after.rows.length === 0
      ? ['the zone is now empty: the registrar may put its parking records there']
      : []),
    ...(before.emailType !== after.emailType
      ? [`the email type is now ${after.emailType}, it was ${before.emailType ?? 'not set'}`]
      : []),
  ]
}

/**
 * The requests that a write did. In a zone that came back otherwise than several requests made it, those are done whose
 * own records are as they asked, if the others' records are all that differs; what no request accounts for is nobody's
 * success.
 */
export function findDone(judged: EvaluatedWrite[], outcome: WriteOutcome): EvaluatedWrite[] {
  const changing = judged.filter((each) => each.written && !each.waiting.request.dryRun)
  if (outcome.kind === 'written') return changing
  if (outcome.kind !== 'differs' || changing.length < 2) return []
  const deltas = changing.map((each) => ({ each, ...deltaOf(each) }))
  const last = changing.at(-1)?.after ?? outcome.zone
  const missing = subtract(last.rows, outcome.zone.rows, last.domain)
  const unexpected = subtract(outcome.zone.rows, last.rows, last.domain)
  const ours = deltas.flatMap((delta) => delta.added)
  const asked = deltas.flatMap((delta) => delta.removed)
  const foreign = subtract(missing, ours, last.domain).length > 0
  const mangled = subtract(unexpected, asked, last.domain).length
  if (foreign || mangled > missing.length || outcome.zone.emailType !== last.emailType) return []
  const holds = (rows: Row[], others: Row[]) =>
    subtract(rows, others, last.domain).length === rows.length
  return deltas
    .filter(({ added, removed }) => holds(added, missing) && holds(removed, unexpected))
    .map(({ each }) => each)
}

/** Answers a request by what it came to. */
export function settle({ waiting, written, error }: EvaluatedWrite, outcome?: WriteOutcome) {
  if (!written) waiting.reject(error)
  else if (outcome?.kind === 'written' && !waiting.request.dryRun)
    waiting.resolve({ ...written, zone: outcome.zone })
  else waiting.resolve(written)
}

export function rejectAll(waiting: QueuedWrite[], error: unknown) {
  for (const each of waiting) each.reject(error)
}

const deltaOf = ({ before, after }: EvaluatedWrite) => ({
  added: subtract(after.rows, before.rows, before.domain),
  removed: subtract(before.rows, after.rows, before.domain),
})
