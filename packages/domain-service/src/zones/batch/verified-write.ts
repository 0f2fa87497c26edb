import { type Clock, delay, HttpError, type Logger } from '@domains-and-files/http'
import { etagOf, type Zone } from '../../dns/zone.ts'
import { writeNotConfirmed, zoneKeepsChanging } from '../../errors.ts'
import type { RecentSend } from '../../ledger/ledger.ts'
import { CallFailed } from '../../registrar/call-failed.ts'
import {
  ageOf,
  type BatchCalls,
  describeDifference,
  isSame,
  lookAgainMs,
  StaleRead,
} from './current-zone.ts'

/**
 * How a write ended. `written`: the registrar has the zone as sent (`verified`: read back). `refused`: the registrar
 * refused it; `rows` are the indexes of the rows that it names, `zone` is the one before if it is still shown. `unsent`:
 * nothing was done (`retry`: evaluate the writes again, on this zone or on a read). `differs`: another zone was read back.
 * `unknown`: not known yet. `unanswered`: how many transmissions got no answer and may still be carried out.
 */
export type WriteOutcome = { unanswered: number } & (
  | { kind: 'written'; zone: Zone; verified: boolean }
  | { kind: 'refused'; error: HttpError; rows: readonly number[]; zone: Zone | undefined }
  | ({ kind: 'unsent' } & Unsent)
  | { kind: 'differs'; error: HttpError; zone: Zone }
  | { kind: 'unknown'; error: HttpError; zone?: Zone }
)

interface Unsent {
  error: HttpError
  retry?: { zone?: Zone | undefined } | undefined
}

interface Write {
  calls: Pick<BatchCalls, 'ensure' | 'isFresh' | 'read' | 'replace'>
  before: Zone
  after: Zone
  /** Sends before this one, newest first. */
  recent: RecentSend[]
  /** Reads the zone as the base of a write, after these sends. */
  readCurrent: (recent: RecentSend[]) => Promise<Zone>
  verify: boolean
  clock: Clock
  log: Logger
}

const staleTries = 3
const maxReads = 3

/**
 * Sends a zone and finds out what became of it. A lost or broken answer is resolved by reading: the new zone there means
 * written; the old one means that it is sent once more; any other is not confirmed. Refusals are checked, too.
 */
export async function writeVerified(write: Write): Promise<WriteOutcome> {
  for (let unanswered = 0; ; ) {
    const sent = await send(write)
    if ('error' in sent) return endUnsent(sent, { ...write, unanswered })
    const { failure } = sent
    if (!failure && !write.verify)
      return { kind: 'written', zone: write.after, verified: true, unanswered }
    if (failure && isRefusal(failure)) {
      const outcome = await examineRefusal(write, failure)
      if (failure.kind !== 'busy' || outcome.kind !== 'refused') return { ...outcome, unanswered }
      const retry = unanswered === 0 ? { zone: outcome.zone } : {}
      return endUnsent({ error: failure, retry }, { ...write, unanswered })
    }

    const mayResend = failure?.kind === 'unknown' && unanswered === 0
    const outcome = await readBack(write, { failure, mayResend })
    const isDone = outcome !== 'unchanged' && outcome.kind === 'written'
    if (failure?.kind === 'unknown' && !isDone) unanswered += 1
    if (outcome !== 'unchanged') return { ...outcome, unanswered }
    if (failure?.kind === 'doubtful')
      return { kind: 'refused', error: failure, rows: [], zone: write.before, unanswered }
    if (!mayResend) return { ...neverCarriedOut(write), unanswered }
    write.log.warn({ domain: write.before.domain, code: failure?.code }, 'resending write')
  }
}

const neverCarriedOut = ({ before }: Write) => {
  const detail =
    'The registrar did not carry out the change, which was sent twice: the zone is as it was'
  return { kind: 'unknown' as const, error: writeNotConfirmed(detail), zone: before }
}

/** Whether the registrar says that it did nothing. */
const isRefusal = ({ kind }: CallFailed) => kind === 'refused' || kind === 'busy' || kind === 'auth'

// The registrar has carried out writes that it reported as refused, or as too many.
async function examineRefusal(write: Write, failure: CallFailed) {
  const { calls, before, after } = write
  const refused = { kind: 'refused' as const, error: failure, rows: failure.rowIndexes }
  try {
    const zone = await calls.read()
    const isDone = isSame(zone, after) && !isSame(zone, before)
    if (isDone) return written(zone, after)
    return { ...refused, zone: isBase(zone, write) ? before : undefined }
  } catch (cause) {
    if (cause instanceof CallFailed && isRefusal(cause)) return { ...refused, zone: undefined }
    return notReadBack(write, { failure, cause })
  }
}

// A send that never left changes nothing, unless one before it got no answer: that may still be carried out.
function endUnsent(
  { error, retry }: Unsent,
  { unanswered, after }: Write & { unanswered: number },
): WriteOutcome {
  if (unanswered === 0) return { kind: 'unsent', error, retry, unanswered }
  const { zone } = retry ?? {}
  if (!zone) {
    const detail =
      'The registrar did not answer, and the change could not be sent again: read the zone'
    return { kind: 'unknown', error: writeNotConfirmed(detail, error), unanswered }
  }
  if (isSame(zone, after)) return { ...written(zone, after), unanswered: 0 }
  const problem = writeNotConfirmed(describeDifference(zone, after))
  return { kind: 'differs', error: problem, zone, unanswered }
}

async function send(write: Write): Promise<Unsent | { failure: CallFailed | undefined }> {
  for (let attempt = 1; ; attempt++) {
    let isSending = false
    try {
      const zone = await readAgainIfStale(write)
      if (zone) return { error: zoneKeepsChanging(), retry: { zone } }
      isSending = true
      await write.calls.replace(write.after)
      return { failure: undefined }
    } catch (error) {
      // Read and sent at once: on a slow machine or database another round of the batch would take longer.
      if (error instanceof StaleRead && attempt < staleTries) continue
      if (!(error instanceof HttpError)) throw error
      if (isSending && error instanceof CallFailed) return { failure: error }
      // The call was not made: no slot came free, the circuit is open, or the zone could not be read.
      return { error }
    }
  }
}

/** @returns the zone if it is not the one that the write is based on. */
async function readAgainIfStale(write: Write): Promise<Zone | undefined> {
  const { calls, before } = write
  await calls.ensure(2)
  if (calls.isFresh) return undefined
  await calls.ensure(3)
  // Stands for no send, or one without an answer: the zone may well be as it was.
  const base = { base: before, zone: before, isDone: true }
  const zone = await write.readCurrent([base, ...write.recent])
  return isBase(zone, write) ? undefined : zone
}

/** Whether this is the zone that the write is based on. */
function isBase(zone: Zone, { before }: Write): boolean {
  const known = zone.emailType === undefined ? { ...zone, emailType: before.emailType } : zone
  return etagOf(known) === etagOf(before)
}

async function readBack(
  write: Write,
  { failure, mayResend }: { failure: CallFailed | undefined; mayResend: boolean },
): Promise<DistributiveOmit<WriteOutcome, 'unanswered'> | 'unchanged'> {
  const { calls, before, after, clock } = write
  const recent = [{ base: before, zone: after, isDone: !failure }, ...write.recent]
  let previous: Zone | undefined
  for (let reads = 1; ; reads++) {
    let zone: Zone
    try {
      zone = await calls.read()
    } catch (cause) {
      return notReadBack(write, { failure, cause })
    }
    const age = ageOf(zone, recent)
    if (age === 0) return written(zone, after)
    const isRepeated = previous !== undefined && isSame(zone, previous)
    previous = zone
    const isOld = isSame(zone, before)
    if (isOld && mayResend && isRepeated) return 'unchanged'
    if (reads < maxReads && !(age < 0 && isRepeated)) {
      // The zone before this send may be an outdated answer. Any other zone has to be read twice.
      if (age > 0 && !mayResend) await delay(clock, lookAgainMs)
      continue
    }
    if (isSame(zone, after)) return written(zone, after)
    if (isOld && failure) return 'unchanged'
    const error = writeNotConfirmed(describeDifference(zone, after))
    // Accepted, and perhaps still to be shown: a later read resolves it.
    return { kind: age > 0 ? 'unknown' : 'differs', zone, error }
  }
}

const written = (zone: Zone, after: Zone) => ({
  kind: 'written' as const,
  zone: zone.emailType === undefined ? { ...zone, emailType: after.emailType } : zone,
  verified: true,
})

function notReadBack(
  { after }: Write,
  { failure, cause }: { failure: CallFailed | undefined; cause: unknown },
) {
  if (!failure) return { kind: 'written' as const, zone: after, verified: false }
  const detail =
    'The change was sent, but the zone could not be read back: read it before you try again'
  return { kind: 'unknown' as const, error: writeNotConfirmed(detail, cause) }
}

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown
  ? Omit<Union, Key>
  : never
