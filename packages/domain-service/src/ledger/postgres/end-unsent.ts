import type { Transaction } from '@domains-and-files/persistence'
import { leaseLost } from '../../errors.ts'
import type { ChangeEffect, ChangeRequest, StoredProblem } from '../ledger.ts'
import { insertChange } from './insert-change.ts'
import type { Leases } from './replicas/leases.ts'
import { notify } from './replicas/notifications.ts'
import { effectColumns } from './send-store.ts'
import { putZones } from './zone-snapshots.ts'

/** Ends a change that was not sent. One that a batch has taken can be ended only by the holder of its domain's lease. */
export async function endUnsent(
  transaction: Transaction,
  leases: Leases,
  { id, request }: { id: number | undefined; request: ChangeRequest },
  end: { effect: ChangeEffect } | { problem: StoredProblem },
): Promise<number> {
  const row = id ?? (await insertChange(transaction, request, { isAsync: false }))
  const isHeld = leases.current(request.domain) !== undefined
  if (isHeld) await leases.lock(transaction, request.domain)
  const columns = JSON.stringify(await endColumns(transaction, end))
  const ended = await transaction.query(update, [row, isHeld, columns])
  if (ended.length === 0) throw leaseLost(request.domain)
  await transaction.query(`select ${notify(1)}`, [request.domain])
  return row
}

async function endColumns(
  transaction: Transaction,
  end: { effect: ChangeEffect } | { problem: StoredProblem },
) {
  if ('problem' in end) {
    const problem = JSON.stringify(end.problem)
    // Nothing was sent: a failure that may pass is not the answer to a repeated request.
    const releaseKey = end.problem.status >= 500
    return { status: 'refused', warnings: '[]', problem, release_key: releaseKey }
  }
  const digests = await putZones(transaction, [end.effect.before, end.effect.after])
  const effect = effectColumns(end.effect, digests)
  return { ...effect, status: 'confirmed', problem: null, release_key: false }
}

const update = `update domain_service.changes set status = ended.status, ended_at = domain_service.now_ms(),
    before = ended.before, after = ended.after, problem = ended.problem, email_type_before = ended.email_type_before,
    email_type_after = ended.email_type_after, summary = ended.summary, warnings = ended.warnings, verified = 1,
    request = null, sent_at = null,
    idempotency_key = case when ended.release_key then null else idempotency_key end
  from json_to_record($3) as ended (status text, before text, after text, problem text, email_type_before text,
    email_type_after text, summary text, warnings text, release_key boolean)
  where id = $1 and (changes.status = 'queued' or ($2 and changes.status = 'sending')) returning id`
