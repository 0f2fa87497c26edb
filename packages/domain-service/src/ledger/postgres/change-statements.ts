import { abandonedMs } from './replicas/awaited-changes.ts'

/** Whether a batch may begin a change: it is asynchronous, or somebody waits for it. */
export const isAwaited = '(is_async = 1 or awaited_until > domain_service.now_ms())'

/** A replica that is late with its renewal still goes on. */
const isAbandoned = `(is_async = 0 and awaited_until <= domain_service.now_ms() - ${abandonedMs})`

export const claim = `update domain_service.changes set status = 'sending', claim_fence = $3
  where id = any($1) and domain = $2 and status = 'queued' and ${isAwaited} returning id`

/** Changes that a batch has taken and not sent. */
const isUnsent = `status = 'sending' and (send_id is null or exists
  (select from domain_service.sends where sends.id = send_id and state in ('refused', 'unsent')))`

const putBack = `status = case when ${isAbandoned} then 'cancelled' else 'queued' end,
  ended_at = case when ${isAbandoned} then domain_service.now_ms() end,
  idempotency_key = case when ${isAbandoned} then null else idempotency_key end`

/** Puts back what earlier holders of a domain's lease took and did not send. The caller holds it. */
export const recoverDomain = `update domain_service.changes set ${putBack}
  where domain = $1 and coalesce(claim_fence, 0) < $2 and ${isUnsent}`

// The lock keeps a holder from renewing its lease meanwhile.
export const recoverClaimed = `with free as (select name, fence from domain_service.leases
    where until <= domain_service.now_ms()
      and exists (select from domain_service.changes where domain = name and status = 'sending')
    for update skip locked)
  update domain_service.changes set ${putBack} from free
  where domain = free.name and coalesce(claim_fence, 0) <= free.fence and ${isUnsent}`

/** A restored backup has no leases. */
export const recoverRestored = `update domain_service.changes set ${putBack}
  where claim_fence is null and ${isUnsent}
    and not exists (select from domain_service.leases where name = changes.domain)`

/** What is being sent may have happened. */
export const requeue = `update domain_service.changes set status = 'queued', ended_at = null, sent_at = null,
    problem = null, not_before = domain_service.now_ms() + $2
  where id = $1 and (status in ('queued', 'unconfirmed') or ${isUnsent})`

export const cancelAbandoned = `update domain_service.changes
  set status = 'cancelled', ended_at = domain_service.now_ms(), idempotency_key = null
  where status = 'queued' and ${isAbandoned}`

export const pruneSends = `delete from domain_service.sends
  where started_at < least($1, domain_service.now_ms() - $2) and state not in ('open', 'unknown', 'unverified')
    and not exists (select from domain_service.changes where send_id = sends.id)`

export const pruneZones = `delete from domain_service.zones where used_at < domain_service.now_ms() - $1
  and digest not in (
    select before from domain_service.changes where before is not null
    union select after from domain_service.changes where after is not null
    union select base from domain_service.sends union select zone from domain_service.sends
    union select found from domain_service.sends where found is not null)`
