import {
  byteText,
  int8,
  list,
  type Migrations,
  name,
  type SqlTable,
  type Statement,
  sql,
  strict,
} from '@domains-and-files/persistence'

// Not in the index on types, which each change would have to write: a scan in id order finds these types soon.
const frequentTypes = ['files.changed', 'zone.changed']

const isRare: Statement = sql([`type not in (${frequentTypes.map((type) => `'${type}'`).join(', ')})`])

/** SQL condition: the event has one of these types. With rare types only, the partial index serves it. */
export const ofTypes = (types: readonly string[]): Statement =>
  sql`type in (${list(types)}) and ${types.some((type) => frequentTypes.includes(type)) ? sql`1 = 1` : isRare}`

/** The outbox, in the database of the changes that events report. `expired` is not read any more. */
export const eventMigrations = {
  events: [
    sql`create table ${name('events')} (
      id ${byteText} not null primary key,
      type text not null,
      by text,
      request_id text,
      data text not null
    ) ${strict};
    create index events_of_type on ${name('events')} (type, id) where ${isRare};
    -- One row: the number of the last event, and the id of the last one that was deleted.
    create table ${name('event_sequence')} (
      singleton ${int8} not null primary key,
      last ${int8} not null,
      pruned_at ${int8} not null,
      expired ${byteText} not null
    ) ${strict}`,
    sql`select 1`, // A migration of unreleased versions.
  ],
} satisfies Migrations

/** Tables of the outbox in a backup. */
export const eventTables: SqlTable[] = [
  { name: 'events', key: ['id'] },
  { name: 'event_sequence', key: ['singleton'] },
]

/**
 * Webhooks and their deliveries: in PostgreSQL, or beside the API tokens in DATA_DIR. Times are milliseconds since 1970.
 */
export const webhookMigrations = {
  webhooks: [
    sql`create table ${name('webhooks')} (
      id text not null primary key,
      definition text not null,
      secret text not null,
      created_at ${int8} not null,
      created_by text not null,
      is_paused ${int8} not null default 0,
      -- Events up to here have been delivered, or have a row below.
      position ${byteText} not null,
      -- One process at a time delivers to it.
      claim text,
      claimed_until ${int8} not null default 0
    ) ${strict};
    create table ${name('webhook_deliveries')} (
      webhook text not null references ${name('webhooks')} (id) on delete cascade,
      event ${byteText} not null,
      type text not null,
      status text not null,
      tries ${int8} not null,
      next_at ${int8} not null,
      at ${int8} not null,
      ms ${int8} not null,
      response_status ${int8},
      answer text,
      primary key (webhook, event)
    ) ${strict};
    create index pending_deliveries on ${name('webhook_deliveries')} (webhook, next_at) where status = 'pending'`,
  ],
} satisfies Migrations

/** Tables of the webhooks in a backup, referenced tables first. */
export const webhookTables: SqlTable[] = [
  { name: 'webhooks', key: ['id'] },
  { name: 'webhook_deliveries', key: ['webhook', 'event'] },
]
