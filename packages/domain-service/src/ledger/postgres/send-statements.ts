import { listedColumns } from '../stored-change.ts'

export const insertSend = `insert into domain_service.sends (domain, state, base, zone, started_at)
  values ($1, 'open', $2, $3, domain_service.now_ms()) returning id`

export const endSend = `update domain_service.sends set state = $2, found = coalesce($3, found),
    ended_at = domain_service.now_ms(),
    unanswered = unanswered + $4,
    given_up_at = coalesce(given_up_at, case when $4 > 0 then domain_service.now_ms() end)
  where id = $1`

export const repair = `update domain_service.sends set unanswered = unanswered - 1, repaired_by = $1
  where id = any($2)`

export const releaseRepairs = `update domain_service.sends set unanswered = unanswered + 1, repaired_by = null
  where repaired_by = $1`

export const insertChange = `insert into domain_service.changes (domain, status, by, token, request_id, reason, is_async,
    verified, created_at, sent_at, send_id, before, after, email_type_before, email_type_after, idempotency_key,
    fingerprint, warnings, summary, request)
  select domain, 'sending', by, token, request_id, reason, 0, 0, domain_service.now_ms(), domain_service.now_ms(), send_id,
    before, after, email_type_before, email_type_after, idempotency_key, fingerprint, warnings, summary, request
  from json_populate_record(null::domain_service.changes, $1) returning id`

export const updateChanges = `update domain_service.changes set status = 'sending',
    sent_at = coalesce(sent_at, domain_service.now_ms()), send_id = $1, before = effect.before, after = effect.after,
    email_type_before = effect.email_type_before, email_type_after = effect.email_type_after,
    warnings = effect.warnings, summary = effect.summary
  from json_to_recordset($2) as effect (id bigint, before text, after text, email_type_before text,
    email_type_after text, warnings text, summary text)
  where changes.id = effect.id`

export const endChanges = `update domain_service.changes set status = ended.status, verified = ended.verified,
    warnings = ended.warnings, problem = ended.problem, ended_at = domain_service.now_ms(),
    request = case when ended.status = 'confirmed' then null else request end,
    idempotency_key = case when ended.release_key then null else idempotency_key end
  from json_to_recordset($1) as ended (id bigint, status text, verified integer, warnings text, problem text,
    release_key boolean)
  where changes.id = ended.id`

export const setZones = `update domain_service.changes set before = $2, after = $3, email_type_before = $4,
    email_type_after = $5, delta = $6 where id = $1`

export const changesOf = `select ${listedColumns}, send_id from domain_service.changes where send_id = any($1) order by id`

export const open = `select *, (select next.base from domain_service.sends next where next.domain = sends.domain
      and next.id > sends.id and next.state = 'settled' order by next.id limit 1) as next_base
  from domain_service.sends where domain = $1 and state in ('open', 'unknown', 'unverified') order by id`

// A domain whose lease is held is taken care of.
export const unsettled = `select domain from
    (select domain from domain_service.sends where state in ('open', 'unknown', 'unverified')
     union select domain from domain_service.sends
       where given_up_at > domain_service.now_ms() - $1 and unanswered > 0) unsettled
  where not exists (select from domain_service.leases where name = domain and until > domain_service.now_ms())`

export const givenUp = `select * from domain_service.sends where domain = $1
    and given_up_at > domain_service.now_ms() - $2 and unanswered > 0 and state not in ('open', 'unsent')
  order by id desc limit 20`

export const last = `select * from domain_service.sends where domain = $1 and state in ('settled', 'unverified')
  order by id desc limit 1`

// An unknown send was last seen not done, which may have been an outdated answer.
export const recent = `select state, base, case when state = 'unknown' then zone else coalesce(found, zone) end as zone
  from domain_service.sends
  where domain = $1 and coalesce(ended_at, started_at) > domain_service.now_ms() - $2
    and state not in ('refused', 'unsent') and (state <> 'closed' or found is not null)
  order by id desc limit 5`
