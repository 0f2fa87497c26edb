import { EventEmitter } from 'node:events'
import type { Rights } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import { join, name, now, one, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { Event } from './event.ts'
import { ofTypes } from './tables.ts'

const events = name('events')
const sequence = name('event_sequence')

const keptMs = 30 * 86_400_000
const pruneIntervalMs = 60_000
const maxPruned = 2_000
/** Rows of one insert. */
const maxInserted = 1_000
/** Rows of a further read, and maximum rows scanned for a page: if most are hidden, the page ends before it is full. */
const batchRows = 500
const maxScanned = 20_000

export interface NewEvent {
  type: string
  /** The user or workload that caused it; absent if unknown. */
  by?: string | undefined
  requestId?: string | undefined
  /** JSON, from which `EventSource.describe` builds the API's `data`. */
  data: unknown
}

export type StoredEvent = Pick<NewEvent, 'type' | 'data'>

/** Who reads events: a caller or a webhook. */
export type Reader = Rights & { username?: string }

/** The events of a service: types, and how to describe them for a reader. */
export interface EventSource {
  types: readonly [string, ...string[]]
  /** The kind of limit that webhooks can have. */
  scope: 'domains' | 'folders'
  /** The API's `data` of an event for a reader. Undefined: hidden from this reader. */
  describe: (event: StoredEvent, reader: Reader) => object | undefined
  /** An event of this type, with the API's object. */
  example: { type: string; data: Pick<Event, 'at' | 'by' | 'request_id'> }
}

/**
 * Appends events in the transaction of their change; call it after the last lock of that transaction. It numbers events
 * under a row lock held until the commit, so that a reader never sees an event before an earlier one. From time to time
 * it also deletes events older than 30 days.
 */
export async function appendEvents(transaction: SqlTransaction, added: NewEvent[]): Promise<void> {
  const count = added.length
  if (count === 0) return
  const row = await transaction.get<{ last: number; pruned_at: number; now: number }>(sql`
    insert into ${sequence} as known (singleton, last, pruned_at, expired)
    values (1, ${now} * ${sql([String(idsPerMs)])} + ${count - 1}, ${now}, '')
    on conflict (singleton) do update
      set last = case when known.last + ${count} > excluded.last then known.last + ${count} else excluded.last end
    returning last, pruned_at, ${now} now`)
  if (!row) throw new Error('the sequence of events has no row')
  const rows = added.map(
    ({ type, by, requestId, data }, at) =>
      sql`(${eventId(row.last - count + 1 + at)}, ${type}, ${by}, ${requestId}, ${JSON.stringify(data)})`,
  )
  for (let at = 0; at < count; at += maxInserted)
    await transaction.run(sql`insert into ${events} (id, type, by, request_id, data)
      values ${join(rows.slice(at, at + maxInserted))}`)
  if (row.now - row.pruned_at < pruneIntervalMs) return
  await transaction.run(sql`update ${sequence} set pruned_at = ${row.now}`)
  await transaction.run(sql`delete from ${events} where id in (select id from ${events}
    where id < ${startOfTime(row.now - keptMs)} order by id limit ${maxPruned})`)
}

interface PageQuery {
  /** The position after which to read: an id, or an earlier `next`. Absent: from the oldest event kept. */
  after?: string | undefined
  types?: readonly string[] | undefined
  limit: number
  reader: Reader
}

/** Reads events in the order of their ids, as the API shows them to a reader. */
export class EventLog {
  readonly #sql: Sql
  readonly source: EventSource
  /** Emits `events` when `end` finds more than before: replicas append events, too. */
  readonly appended = new EventEmitter().setMaxListeners(0)
  /** Last result of `end`. */
  lastEnd = ''

  constructor(database: Sql, source: EventSource) {
    this.#sql = database
    this.source = source
  }

  /** The position after all events so far. */
  async end(): Promise<string> {
    const { end } = await this.#state()
    if (end !== this.lastEnd) {
      this.lastEnd = end
      this.appended.emit('events')
    }
    return end
  }

  /** Undefined: deleted, or hidden from this reader. */
  async find(id: string, reader: Reader): Promise<Event | undefined> {
    const row = await this.#sql.get<EventRow>(sql`select * from ${events} where id = ${id}`)
    return row && this.#show(row, reader)
  }

  /**
   * The events after a position. Continuing at `next` misses none, despite concurrent commits. `isEnd`: there were no more.
   * @throws 410 `events_expired` for a position older than 30 days, unless no event was appended since.
   */
  async page({ after = '', types, limit, reader }: PageQuery) {
    // Before the events are read: all up to `end` are committed.
    const { end, nowMs } = await this.#state()
    const oldest = startOfTime(nowMs - keptMs)
    if (after !== '' && after < end && after < oldest) throw eventsExpired()
    const found: Event[] = []
    // A position in the future is of a clock that was ahead: which events its reader has seen is unknown.
    let next = after > later(end, startOfTime(nowMs)) ? oldest : later(after, oldest)
    for (let scanned = 0, count = limit + 1; scanned < maxScanned; count = batchRows) {
      const rows = await this.#sql.all<EventRow>(sql`select * from ${events}
        where id > ${next} and ${types ? ofTypes(types) : sql`1 = 1`} order by id limit ${count}`)
      scanned += count
      for (const row of rows) {
        if (found.length === limit) return { events: found, next, isEnd: false }
        const shown = this.#show(row, reader)
        if (shown) found.push(shown)
        next = row.id
      }
      if (rows.length === count) continue
      // On an idle log `next` advances with time, so that the position of a follower does not expire.
      next = later(later(next, end), startOfTime(nowMs - keptMs / 2))
      return { events: found, next, isEnd: true }
    }
    return { events: found, next, isEnd: false }
  }

  #show({ id, type, by, request_id, data: stored }: EventRow, reader: Reader): Event | undefined {
    const data = this.source.describe({ type, data: JSON.parse(stored) }, reader)
    return data && { id, type, at: instantOf(id), by, request_id, data: { ...data } }
  }

  #state() {
    const state = sql`select coalesce((select max(id) from ${events}), '') as "end", ${now} as "nowMs"`
    return one<{ end: string; nowMs: number }>(this.#sql, state)
  }
}

type EventRow = Omit<Event, 'at' | 'data'> & { data: string }

const later = (one: string, other: string) => (other > one ? other : one)

export const eventsExpired = () =>
  new HttpError(410, 'events_expired', 'Over 30 days ago: read from the oldest, without "after"')

// Event ids are ULIDs: ten characters of time, then sixteen random ones. Here the first two of the sixteen are a counter:
// twelve characters encode the number from `appendEvents`, so ids sort in the order of these numbers.

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ' // Crockford's base 32.

/** Event numbers per millisecond: a number is milliseconds × 1,024 + counter. */
export const idsPerMs = 1024

export const eventIdPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** The id of the event with this number. The random `tail` distinguishes events of other services with the same number. */
export function eventId(number: number, tail = ''): string {
  let text = ''
  for (let rest = number; text.length < 12; rest = Math.floor(rest / 32)) text = alphabet.charAt(rest % 32) + text
  text += tail
  // Uniqueness only, not a secret: cryptographic randomness would cost as much as the insert.
  while (text.length < 26) text += alphabet.charAt(Math.random() * 32)
  return text
}

/** Lower bound of the ids from this time on, in milliseconds since 1970. */
export const startOfTime = (milliseconds: number) => eventId(milliseconds * idsPerMs, '0'.repeat(14))

/** The time of an event id. */
export function instantOf(id: string): string {
  const digits = [...id.slice(0, 10)]
  return new Date(digits.reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0)).toISOString()
}
