import {
  dialect,
  int8,
  type Migrations,
  name,
  type SqlTable,
  sql,
  strict,
} from '@domains-and-files/persistence'

// Ids sort by their bytes in both databases.
const text = dialect({ sqlite: sql`text`, postgres: sql`text collate "C"` })

/** The outbox: in the database of what the events are about. */
export const eventMigrations = {
  events: [
    sql`create table ${name('events')} (
      id ${text} not null primary key,
      type text not null,
      by text,
      request_id text,
      data text not null
    ) ${strict};
    create index events_of_type on ${name('events')} (type, id);
    -- One row: the number of the last event, and the id of the last one that was deleted.
    create table ${name('event_sequence')} (
      singleton ${int8} not null primary key,
      last ${int8} not null,
      pruned_at ${int8} not null,
      expired ${text} not null
    ) ${strict}`,
  ],
} satisfies Migrations

/** What a backup of the outbox holds. */
export const eventTables: SqlTable[] = [
  { name: 'events', key: ['id'] },
  { name: 'event_sequence', key: ['singleton'] },
]
