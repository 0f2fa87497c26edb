import { eventMigrations } from '@domains-and-files/events'
import { bytes, dialect, identity, int8, type Migrations, name, sql, strict } from '@domains-and-files/persistence'

/** The schema of this service in a PostgreSQL database. Auth's tables are in it too. */
export const schema = 'domain_service'

/** The file of the embedded database, in DATA_DIR. */
export const databaseName = 'domain-service.sqlite'

// Large columns stand last: a list does not read past the small ones. A domain may have many sends: each query finds those
// of the last minutes without reading the others. An index that no query of a write needs costs pages of each commit.
const ledger = sql`
  create table ${name('zones')} (
    digest text primary key,
    used_at ${int8} not null,
    snapshot ${bytes} not null
  ) ${strict};

  create table ${name('sends')} (
    id ${identity},
    domain text not null,
    state text not null,
    base text not null,
    zone text not null,
    found text,
    started_at ${int8} not null,
    ended_at ${int8},
    given_up_at ${int8},
    unanswered ${int8} not null default 0,
    repaired_by ${int8}
  ) ${strict};
  create index sends_by_end on ${name('sends')} (domain, ended_at);
  create index unsettled_sends on ${name('sends')} (domain) where state in ('open', 'unknown', 'unverified');
  create index given_up_sends on ${name('sends')} (domain, given_up_at) where given_up_at is not null;
  create index repaired_sends on ${name('sends')} (repaired_by) where repaired_by is not null;

  create table ${name('changes')} (
    id ${identity},
    domain text not null,
    status text not null,
    by text not null,
    token text,
    caller text not null,
    request_id text not null,
    reason text,
    approved_by text,
    seen_since ${int8},
    is_async integer not null,
    is_held integer not null default 0,
    verified integer not null,
    created_at ${int8} not null,
    sent_at ${int8},
    ended_at ${int8},
    not_before ${int8} not null default 0,
    attempts integer not null default 0,
    awaited_until ${int8} not null default 0,
    claim_fence ${int8},
    send_id ${int8},
    before text,
    after text,
    email_type_before text,
    email_type_after text,
    idempotency_key text,
    fingerprint text,
    warnings text not null,
    problem text,
    summary text,
    delta ${bytes},
    request text
  ) ${strict};
  create index changes_of_domain on ${name('changes')} (domain, id desc);
  create index changes_of_send on ${name('changes')} (send_id);
  create index pending_changes on ${name('changes')} (domain, id) where status in ('queued', 'sending');
  create index queued_changes on ${name('changes')} (caller) where status in ('queued', 'proposed') and is_async = 1;
  create unique index changes_by_key on ${name('changes')} (caller, idempotency_key)
    where idempotency_key is not null;

  create table ${name('acme_challenges')} (
    id ${identity},
    domain text not null,
    name text not null,
    value text not null,
    owner text not null,
    request_id text not null,
    created_at ${int8} not null,
    added integer not null,
    unique (domain, name, value)
  ) ${strict};
  create index acme_challenges_by_age on ${name('acme_challenges')} (created_at)`

const domainList = sql`
  create table ${name('domain_list_passes')} (
    id ${identity},
    account text not null,
    started_at ${int8} not null,
    completed_at ${int8},
    total ${int8},
    told_at ${int8},
    has_changed ${int8} not null default 0
  ) ${strict};
  create table ${name('domain_list_pages')} (
    pass ${int8} not null references ${name('domain_list_passes')} (id) on delete cascade,
    page ${int8} not null,
    entries text not null,
    primary key (pass, page)
  ) ${strict}`

const budget = sql`
  create table ${name('budgets')} (
    account text primary key,
    blocked_until ${int8} not null default 0
  ) ${strict};
  create table ${name('calls')} (
    id ${identity},
    account text not null,
    at ${int8} not null,
    priority text not null
  ) ${strict};
  create index calls_by_age on ${name('calls')} (account, at)`

// What replicas tell each other of their calls to come, in place of two tables of unreleased versions.
const callShares = sql`
  drop table if exists ${name('call_holds')};
  drop table if exists ${name('call_waiters')};
  create table ${name('call_shares')} (
    account text not null,
    replica text not null,
    share text not null,
    at ${int8} not null,
    primary key (account, replica)
  ) ${strict}`

const leaseClock = dialect({
  sqlite: sql``,
  postgres: sql`create function ${name('lease_ms')}() returns bigint language sql volatile
    as $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $$;`,
})

// No process of the embedded form writes to them.
const replicas = sql`
  ${leaseClock}
  create table ${name('leases')} (
    name text primary key,
    holder text not null,
    fence ${int8} not null,
    until ${int8} not null
  ) ${strict};
  create table ${name('zone_versions')} (domain text primary key, version ${int8} not null) ${strict}`

// Which zones the clients of the registrar's protocol know; not backed up, since they live ten minutes.
const givenZones = sql`
  create table ${name('given_zones')} (
    id ${identity},
    token text not null,
    domain text not null,
    at ${int8} not null,
    is_submitted integer not null,
    copies integer not null default 1,
    zone text not null,
    base text
  ) ${strict};
  create index given_zones_of_token on ${name('given_zones')} (token, domain, id);
  create index given_zones_by_age on ${name('given_zones')} (at)`

// Not backed up: after a restore the zones are read as if for the first time.
const knownZones = sql`
  create table ${name('known_zones')} (
    domain text primary key,
    zone text not null,
    read_at ${int8} not null,
    pending text not null,
    touched text not null
  ) ${strict}`

// Not backed up, since they live five minutes.
const hostUpdates = sql`
  create table ${name('host_updates')} (
    username text not null,
    host text not null,
    count integer not null,
    ends_at ${int8} not null,
    primary key (username, host)
  ) ${strict};
  create index host_updates_by_end on ${name('host_updates')} (ends_at)`

// Four migrations of unreleased versions, whose results the tables above have. Keeps the count of applied migrations, and
// fails in a database that lacks those results.
const merged = sql`select attempts from ${name('changes')} limit 0`

/** The same in both databases; append only. Times are milliseconds since 1970 by the database's clock. */
export const migrations: Migrations = {
  ledger: [
    ledger,
    domainList,
    budget,
    replicas,
    givenZones,
    knownZones,
    ...[merged, merged, merged, merged],
    hostUpdates,
    sql`create index sent_changes on ${name('changes')} (domain, sent_at desc, id desc) where sent_at is not null`,
    callShares,
  ],
  ...eventMigrations,
}
