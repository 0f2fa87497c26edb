import { allowsDomain, type Caller, hasRole, type RecordLimit, requireWithinRecords } from '@domains-and-files/auth'
import { HttpError, includesTag, readIfMatch, slices } from '@domains-and-files/http'
import { applyEdit } from '../../dns/edits/apply-edit.ts'
import { namedRrsets, type ZoneEdit } from '../../dns/edits/zone-edit.ts'
import { isWritable, parseRow, type Row } from '../../dns/record.ts'
import {
  type Delta,
  differenceOf,
  distinctRows,
  etagOf,
  findRrset,
  isDisjoint,
  isEmptyDelta,
  isSameRows,
  subtract,
  type Zone,
} from '../../dns/zone.ts'
import * as errors from '../../errors.ts'
import {
  type ChangeEffect,
  type ChangeRequest,
  type ChangeZones,
  type EvaluatedWrite,
  effectOf,
  type QueuedChange,
  type Warning,
} from '../../ledger/ledger.ts'
import type { WriteOutcome } from './registrar-zone.ts'

/** What a client gets for its write. */
export interface WriteResult extends ChangeEffect {
  /** The zone that was read back: later writes of its batch may have changed it, too. */
  zone: Zone
  /** False: the registrar reported success, but the zone could not be read back yet. */
  verified: boolean
}

/** Whether this write changes the zone. */
export const isChange = ({ before, after }: Pick<EvaluatedWrite, 'before' | 'after'>) => after !== before

/**
 * The record limits of a token never change, so they are not looked at again.
 * @throws 403 where the rights of the author have ended since the write was accepted.
 */
export async function checkRights(
  { callerId, domain, approved }: ChangeRequest,
  findCaller: (id: string) => Promise<Caller | undefined>,
): Promise<void> {
  if (callerId === undefined) return
  const caller = await findCaller(callerId)
  const mayWrite = caller && hasRole(caller, 'editor') && allowsDomain(caller, domain)
  const isApproved = !caller?.writes || approved !== undefined
  if (!mayWrite || !isApproved) throw errors.rightsEnded()
}

/** Evaluates writes in order, each against the zone that the previous ones leave; a failing write changes nothing. */
export async function evaluateWrites(writes: QueuedChange[], zone: Zone) {
  let current = zone
  const evaluated: EvaluatedWrite[] = []
  const nextSlice = slices()
  for (const write of writes) {
    await nextSlice()
    const before = current
    try {
      const effect = evaluateWrite(write.request, before)
      current = effect.after
      evaluated.push({ write, ...effect })
    } catch (error) {
      evaluated.push({ write, ...effectOf(before), error })
    }
  }
  return { evaluated, zone: current }
}

/** Maximum asynchronous writes of a batch that are examined: each costs another evaluation of the batch. */
const maxExamined = 16

/**
 * Leaves out asynchronous writes that later ones undo completely: without such a write the zone ends the same, and every
 * other write succeeds or fails as before. They go to `superseded`, each with the writes that undo it.
 */
export async function takeSuperseded(
  writes: QueuedChange[],
  zone: Zone,
  superseded: Map<QueuedChange, QueuedChange[]>,
): Promise<QueuedChange[]> {
  if (!writes.slice(0, -1).some(({ isAsync }) => isAsync)) return writes
  let kept = writes
  let { evaluated, zone: last } = await evaluateWrites(kept, zone)
  // Whether the final zone has none of the records that the write added.
  const isUndone = ({ write, added }: EvaluatedWrite) =>
    write.isAsync && added.length > 0 && isDisjoint(added, last.rows)
  for (const { write } of evaluated.filter(isUndone).reverse().slice(0, maxExamined)) {
    const others = kept.filter((each) => each !== write)
    const without = await evaluateWrites(others, zone)
    const outcomes = evaluated.filter((each) => each.write !== write)
    const isSameFor = ({ error }: EvaluatedWrite, at: number) =>
      (error === undefined) === (without.evaluated[at]?.error === undefined)
    const { rows, emailType } = without.zone
    const isEqual = emailType === last.emailType && isSameRows(rows, last.rows)
    if (!isEqual || !outcomes.every(isSameFor)) continue
    superseded.set(write, findUndoing(write, evaluated))
    kept = others
    ;({ evaluated, zone: last } = without)
  }
  return kept
}

/** The later writes that removed what this one added. */
function findUndoing(write: QueuedChange, evaluated: EvaluatedWrite[]): QueuedChange[] {
  const [own, ...later] = evaluated.slice(evaluated.findIndex((each) => each.write === write))
  return later.flatMap((each) => (own && !isDisjoint(own.added, each.removed) ? each.write : []))
}

/** The effect of a write on this zone. @throws {HttpError} where it is refused, or differs from the approved effect. */
export function evaluateWrite(request: ChangeRequest, before: Zone): ChangeEffect {
  const { approved, recordLimits } = request
  if (approved) {
    const { effect, reason } = evaluateProposal(request, before)
    if (reason === undefined && isApproved(effect, approved)) return effect
    throw errors.changeOutdated(reason)
  }
  if (recordLimits) demandNamedWithinLimits(recordLimits, before, request.edit)
  if (request.ifMatch !== undefined || request.ifNoneMatch !== undefined) demandPreconditions(request, before)
  if (!before.usesRegistrarDns) throw errors.dnsNotManaged(before.domain)
  const wanted = applyEdit(before, request.edit)
  const delta = differenceOf(before, wanted)
  if (isEmptyDelta(delta)) return effectOf(before)
  if (recordLimits) demandWithinLimits(recordLimits, delta)
  const writable = withoutUnsupported(before, wanted, request)
  // Sent as the registrar keeps them: otherwise the read-back would differ, and a lost row not be in the history.
  const rows = distinctRows(writable.rows)
  const after = rows === writable.rows ? writable : { ...writable, rows }
  const effect = after === wanted ? delta : differenceOf(before, after)
  if (isEmptyDelta(effect)) return effectOf(before)
  const twins = after === writable ? [] : subtract(writable.rows, rows)
  return { before, after, ...effect, warnings: warningsOf(before, after, twins) }
}

/** What a person approves: the records, and from which email type to which. */
export const approvalOf = ({ added, removed, emailType, before }: ChangeZones) => ({
  ...{ added, removed, emailType },
  emailTypeBefore: emailType && before.emailType,
})

export const isApproved = (effect: ChangeEffect, approved: NonNullable<ChangeRequest['approved']>) => {
  const { added, removed, emailType, emailTypeBefore } = approvalOf(effect)
  const { emailTypeBefore: from = emailTypeBefore } = approved // Those of earlier versions do not name it.
  const isSame = emailType === approved.emailType && emailTypeBefore === from
  return isSame && isSameRows(added, approved.added) && isSameRows(removed, approved.removed)
}

/** The effect of a proposal on this zone; `reason`: why it would be refused, so that it has no effect. */
export function evaluateProposal(request: ChangeRequest, before: Zone): { effect: ChangeEffect; reason?: string } {
  try {
    return { effect: evaluateWrite({ ...request, approved: undefined }, before) }
  } catch (error) {
    if (!(error instanceof HttpError) || error.status >= 500) throw error
    return { effect: effectOf(before), reason: error.message }
  }
}

// RFC 9110, 13.1. A zone always exists, so that `If-None-Match: *` holds for a new RRset only.
function demandPreconditions({ ifMatch, ifNoneMatch, edit }: ChangeRequest, zone: Zone) {
  const etag = etagOf(zone)
  if (ifMatch !== undefined && !includesTag(readIfMatch(ifMatch), etag)) throw errors.preconditionFailed(etag)
  const isNew = edit.kind === 'setRrset' && !findRrset(zone, edit.name, edit.type)
  if (ifNoneMatch?.trim() === '*' && !isNew) throw errors.alreadyExists(etag)
}

// Checked first: other faults of such a request would reveal records that the token may not read.
function demandNamedWithinLimits(limits: RecordLimit[], zone: Zone, edit: ZoneEdit) {
  requireWithinRecords(limits, namedRrsets(zone, edit))
  const emailType = 'emailType' in edit ? edit.emailType : undefined
  if (emailType !== undefined && emailType !== zone.emailType) throw errors.emailTypeForbidden()
}

// Looks at the effect rather than the edit: every kind of edit is limited alike.
function demandWithinLimits(limits: RecordLimit[], effect: Delta) {
  const changed = [...effect.added, ...effect.removed].map((row) => parseRow(row).record)
  requireWithinRecords(limits, changed)
  if (effect.emailType !== undefined) throw errors.emailTypeForbidden()
}

function withoutUnsupported(before: Zone, wanted: Zone, { force, recordLimits }: ChangeRequest): Zone {
  const lost = [...before.rows, ...wanted.rows].filter((row) => !isWritable(row))
  if (lost.length === 0) return wanted
  if (!force) throw errors.unsupportedRecords([...new Set(lost)].map((row) => parseRow(row).record))
  if (recordLimits) throw errors.forceForbidden()
  return { ...wanted, rows: wanted.rows.filter(isWritable) }
}

/** `twins`: rows that are left out, since the registrar would merge them with another one. */
function warningsOf(before: Zone, after: Zone, twins: Row[]): Warning[] {
  const about = (row: Row, what: string) => {
    const { name, type, address } = parseRow(row).record
    return { rrset: { name, type }, text: `${name} ${type} ${address} ${what}` }
  }
  return [
    ...before.rows
      .filter((row) => !isWritable(row))
      .map((row) => about(row, "is removed: the registrar's API does not accept its type")),
    ...twins.map((row) => about(row, 'is there more than once: the registrar keeps one of them')),
    ...after.rows.filter((row) => row.dynamic).map((row) => about(row, 'loses its dynamic-DNS flag')),
    ...(after.rows.length === 0 ? ['no record is left: the registrar may add its parking records'] : []),
    ...(before.emailType !== after.emailType
      ? [`the email type changes from ${before.emailType ?? 'not set'} to ${after.emailType}`]
      : []),
  ]
}

/**
 * The writes of a batch that are done. If the zone read back differs from the zone of several writes, a write is done
 * whose own records are as requested, provided that only records of other writes differ. If any difference belongs to no
 * write, none of them is done.
 */
export function findDone(evaluated: EvaluatedWrite[], outcome: WriteOutcome): EvaluatedWrite[] {
  const changing = evaluated.filter(isChange)
  const last = changing.at(-1)?.after
  if (!outcome.error) return changing
  if (outcome.state !== 'closed' || changing.length < 2 || !last) return []
  const { added: missing, removed: unexpected } = differenceOf(outcome.found, last)
  const added = changing.flatMap((each) => each.added)
  const removed = changing.flatMap((each) => each.removed)
  const isForeign = subtract(missing, added).length > 0
  const mangled = subtract(unexpected, removed).length
  if (isForeign || mangled > missing.length || outcome.found.emailType !== last.emailType) return []
  return changing.filter((each) => isDisjoint(each.added, missing) && isDisjoint(each.removed, unexpected))
}

/** The writes that added the rows at these places of the zone that was sent. */
export function findOwners(evaluated: EvaluatedWrite[], rows: readonly number[]): EvaluatedWrite[] {
  const changing = evaluated.filter(isChange)
  const sent = changing.at(-1)?.after
  const named = rows.flatMap((index) => sent?.rows[index] ?? [])
  if (!sent || named.length === 0) return []
  return changing.filter(({ added }) => !isDisjoint(named, added))
}
