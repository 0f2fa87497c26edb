import type { Transaction } from '@domains-and-files/persistence'
import { idempotencyKeyReused } from '../../errors.ts'
import type { ChangeRequest } from '../ledger.ts'
import { requestColumns } from '../stored-change.ts'
import { awaitedMs } from './replicas/awaited-changes.ts'
import { notify } from './replicas/notifications.ts'

/** How long an idempotency key stands for one request. */
const keyMs = 86_400_000

/**
 * Queues a change, or finds the one that used the same idempotency key.
 * @throws 422 `idempotency_key_reused` for another request under the same key.
 */
export async function insertChange(
  transaction: Transaction,
  request: ChangeRequest,
  { isAsync }: { isAsync: boolean },
): Promise<number> {
  const { by, idempotency } = request
  if (idempotency) await transaction.query(releaseOldKey, [by, idempotency.key, keyMs])
  const columns = { ...requestColumns(request), is_async: isAsync ? 1 : 0 }
  const [inserted] = await transaction.query<{ id: number }>(insert, [JSON.stringify(columns)])
  if (inserted) {
    await transaction.query(`select ${notify(1)}`, [request.domain])
    return inserted.id
  }
  const [known] = await transaction.query<{ id: number; fingerprint: string }>(
    'select id, fingerprint from domain_service.changes where by = $1 and idempotency_key = $2',
    [by, idempotency?.key],
  )
  // Its key was released between the two statements.
  if (!known) return insertChange(transaction, request, { isAsync })
  if (known.fingerprint !== idempotency?.fingerprint) throw idempotencyKeyReused()
  return known.id
}

const insert = `insert into domain_service.changes (domain, status, by, token, request_id, reason, is_async, verified,
    created_at, idempotency_key, fingerprint, warnings, request, awaited_until)
  select domain, 'queued', by, token, request_id, reason, is_async, 0, domain_service.now_ms(), idempotency_key,
    fingerprint, '[]', request, domain_service.now_ms() + ${awaitedMs}
  from json_populate_record(null::domain_service.changes, $1)
  on conflict (by, idempotency_key) where idempotency_key is not null do nothing returning id`

const releaseOldKey = `update domain_service.changes set idempotency_key = null
  where by = $1 and idempotency_key = $2 and created_at <= domain_service.now_ms() - $3`
