import { hasDelta, type Zone } from '../../dns/zone.ts'
import { writeNotConfirmed } from '../../errors.ts'
import {
  type ChangeOutcome,
  fromStoredProblem,
  lateMs,
  type OpenSend,
  type SendOutcome,
  type StoredChange,
} from '../../ledger/ledger.ts'
import type { ZoneDependencies } from '../zone-dependencies.ts'
import { notVerified } from './batch-recorder.ts'
import { describeDifference, isSame } from './current-zone.ts'

/**
 * Finds out what became of an earlier send of this zone whose outcome is unknown: the process ended, the registrar did
 * not answer, or the zone could not be read back.
 */
export async function resolveOpenSend(send: OpenSend, zone: Zone, options: ZoneDependencies): Promise<void> {
  const { ledger, log } = options
  // A later send may have made the same change: only the zone read before it shows the effect of this one.
  const seen = send.nextBase ?? zone
  const outcome = await outcomeOf(send, seen, options)
  if (!outcome) return
  await ledger.endSend(send, outcome.found ? { ...outcome, latest: zone } : outcome)
  log.info({ domain: zone.domain, send: send.id, state: outcome.state }, 'open write resolved')
}

async function outcomeOf(
  send: OpenSend,
  zone: Zone,
  { ledger, clock }: ZoneDependencies,
): Promise<SendOutcome | undefined> {
  const unanswered = send.state === 'open' ? 1 : 0
  if (isSame(zone, send.zone)) {
    return { state: 'settled', found: zone, unanswered, changes: send.changes.map(confirmed) }
  }
  if (isSame(zone, send.base)) {
    const isYoung = !send.nextBase && clock.now() - send.startedAt.getTime() < lateMs
    // The registrar may still carry it out, or show it later.
    if (isYoung && send.state === 'unknown') return undefined
    // Reported as done, but not shown: what it repaired is repaired again, and its changes are reported later.
    if (isYoung && send.state === 'unverified') return { state: 'unknown', unanswered: 1, changes: [] }
    const changes = send.changes.map(
      (change): ChangeOutcome =>
        send.state === 'open' && change.is_async
          ? { id: change.id, status: 'queued' }
          : notConfirmed(change, send, zone),
    )
    return { state: isYoung ? 'unknown' : 'closed', unanswered, changes }
  }
  const changes = await Promise.all(
    send.changes.map(async (change) => {
      const zones = await ledger.zonesOf(change.id)
      // Looks at the change's own records only: other tools may have changed others since.
      return zones && hasDelta(zone, zones) ? confirmed(change) : notConfirmed(change, send, zone)
    }),
  )
  return { state: 'closed', found: zone, unanswered, changes }
}

const confirmed = ({ id, warnings }: StoredChange): ChangeOutcome => ({
  id,
  status: 'confirmed',
  warnings: warnings.filter((warning) => warning !== notVerified),
})

function notConfirmed(change: StoredChange, send: OpenSend, zone: Zone): ChangeOutcome {
  return {
    id: change.id,
    status: 'unconfirmed',
    // The problem that the client got, or the one known now.
    error: change.problem ? fromStoredProblem(change.problem) : writeNotConfirmed(describeDifference(zone, send.zone)),
    // No client got an answer, so a repeated request must be carried out.
    releaseKey: send.state === 'open',
  }
}
