import type { HttpError } from '@domains-and-files/http'
import type { Zone } from '../../dns/record.ts'
import { zoneKeepsChanging } from '../../errors.ts'
import type { ChangeOutcome, SendOutcome } from '../../ledger/ledger.ts'
import { toStoredProblem } from '../stored-problem.ts'
import { type EvaluatedWrite, isChange } from './evaluate-write.ts'
import type { WriteOutcome } from './verified-write.ts'

/** The warning of a write that is done, but not read back yet. */
export const notVerified = 'the registrar reported success, but the zone could not be read back yet'

/** One setHosts that has ended: what it was based on, and the writes of its batch. */
export interface EndedSend {
  id: number
  /** The zone as it was read before. */
  base: Zone
  /** The change by which the service repaired a late write. */
  repairId: number | undefined
  evaluated: EvaluatedWrite[]
}

/** What the ledger records of a send. `done` are the writes that it carried out. */
export function sendOutcome(
  send: EndedSend,
  outcome: WriteOutcome,
  done: EvaluatedWrite[],
): SendOutcome {
  const changes = send.evaluated.filter(isChange).flatMap((each) => {
    const { id } = each.write
    if (id === undefined) return []
    return changeOutcome(
      { id, warnings: each.warnings, isDone: done.includes(each) },
      send,
      outcome,
    )
  })
  const found = 'zone' in outcome ? outcome.zone : undefined
  const state = stateOf(outcome, done.length > 0)
  return {
    state,
    // A repair that was not seen to work is tried again: only the outdated zone itself triggers it.
    releaseRepairs: state === 'unsent' || state === 'unknown' || state === 'refused',
    found,
    unanswered: outcome.unanswered,
    changes: [...repairOutcome(send, outcome), ...changes],
  }
}

// A repair that was not sent or not accepted is refused until another send of the batch carries it.
function repairOutcome(send: EndedSend, outcome: WriteOutcome): ChangeOutcome[] {
  const id = send.repairId
  if (id === undefined) return []
  const isDone = outcome.kind === 'written'
  const [known] = changeOutcome({ id, warnings: [], isDone }, send, outcome)
  if (known) return [known]
  const problem = toStoredProblem('error' in outcome ? outcome.error : zoneKeepsChanging())
  return [{ id, status: 'refused', verified: true, warnings: [], problem }]
}

function stateOf(outcome: WriteOutcome, hasDone: boolean): SendOutcome['state'] {
  if (outcome.kind === 'written') return outcome.verified ? 'settled' : 'unverified'
  if (outcome.kind === 'differs') return hasDone ? 'settled' : 'closed'
  if (outcome.kind === 'refused' || outcome.kind === 'unknown') return outcome.kind
  return 'unsent'
}

function changeOutcome(
  { id, warnings, isDone }: { id: number; warnings: string[]; isDone: boolean },
  { base }: EndedSend,
  outcome: WriteOutcome,
): ChangeOutcome[] {
  // The zones of the intent hold where the batch came out as intended; else those that really were.
  const zones = outcome.kind === 'differs' ? { before: base, after: outcome.zone } : undefined
  if (isDone) {
    const verified = outcome.kind !== 'written' || outcome.verified
    const added = verified ? [] : [notVerified]
    return [{ id, status: 'confirmed', verified, warnings: [...warnings, ...added], zones }]
  }
  if (outcome.kind !== 'differs' && outcome.kind !== 'unknown') return []
  const problem = toStoredProblem(outcome.error)
  return [{ id, status: 'unconfirmed', verified: false, warnings, zones, problem }]
}

/** A change that the registrar refused: the zone stayed as it was. */
export const refusedChange = (id: number, error: HttpError, zone: Zone): ChangeOutcome => ({
  id,
  status: 'refused',
  verified: true,
  warnings: [],
  problem: toStoredProblem(error),
  zones: { before: zone, after: zone },
})
