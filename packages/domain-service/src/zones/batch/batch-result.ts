import { type Row, subtract } from '../../dns/record.ts'
import { type EvaluatedWrite, isChange } from './evaluate-write.ts'
import type { WriteOutcome } from './verified-write.ts'

/**
 * The writes of a batch that are done. Where the zone came back otherwise than several writes together left it, those
 * are done whose own records are as requested, if the other writes' records are all that differs. A difference that no
 * write accounts for is nobody's success.
 */
export function findDone(evaluated: EvaluatedWrite[], outcome: WriteOutcome): EvaluatedWrite[] {
  const changing = evaluated.filter(isChange)
  const last = changing.at(-1)?.after
  if (outcome.kind === 'written') return changing
  if (outcome.kind !== 'differs' || changing.length < 2 || !last) return []
  const { domain } = last
  const deltas = changing.map((each) => ({ each, ...deltaOf(each) }))
  const missing = subtract(last.rows, outcome.zone.rows, domain)
  const unexpected = subtract(outcome.zone.rows, last.rows, domain)
  const added = deltas.flatMap((delta) => delta.added)
  const removed = deltas.flatMap((delta) => delta.removed)
  const isForeign = subtract(missing, added, domain).length > 0
  const mangled = subtract(unexpected, removed, domain).length
  if (isForeign || mangled > missing.length || outcome.zone.emailType !== last.emailType) return []
  const isDisjoint = (rows: Row[], others: Row[]) =>
    subtract(rows, others, domain).length === rows.length
  return deltas
    .filter((delta) => isDisjoint(delta.added, missing) && isDisjoint(delta.removed, unexpected))
    .map(({ each }) => each)
}

/** The writes that added the rows at these places of the zone that was sent. */
export function findOwners(evaluated: EvaluatedWrite[], rows: readonly number[]): EvaluatedWrite[] {
  const changing = evaluated.filter(isChange)
  const sent = changing.at(-1)?.after
  const named = rows.flatMap((index) => sent?.rows[index] ?? [])
  if (!sent || named.length === 0) return []
  return changing.filter((each) => {
    const { added } = deltaOf(each)
    return subtract(named, added, sent.domain).length < named.length
  })
}

const deltaOf = ({ before, after }: EvaluatedWrite) => ({
  added: subtract(after.rows, before.rows, before.domain),
  removed: subtract(before.rows, after.rows, before.domain),
})
