import { setImmediate as turn } from 'node:timers/promises'
import { name, type Sql, sql } from '@domains-and-files/persistence'
import { describe, expect, it } from 'vitest'
import { appendEvents, EventLog, type EventSource, instantOf } from '../src/outbox.ts'
import { ofTypes } from '../src/tables.ts'
import { forms, start } from './support/databases.ts'

const dayMs = 86_400_000
const countEvents = sql`select count(*) count from ${name('events')}`
const append = (database: Sql, ...data: unknown[]) =>
  database.transaction((transaction) =>
    appendEvents(
      transaction,
      data.map((each) => ({ type: typeof each, data: each })),
    ),
  )

const reader = { role: 'admin' } as const
const logOf = (database: Sql, isShown = (_data: unknown) => true) => {
  const describe: EventSource['describe'] = ({ data }) => (isShown(data) ? { is: data } : undefined)
  // Cast: only routes read the rest.
  return new EventLog(database, { describe } as EventSource)
}
const dataOf = (events: { data: Record<string, unknown> }[]) => events.map(({ data }) => data.is)

/** Follows `next` from a position until there is no more. */
async function readAll(log: EventLog, after?: string) {
  const found: unknown[] = []
  for (let position = after; ; ) {
    const { events, next } = await log.page({ after: position, limit: 3, reader })
    found.push(...dataOf(events))
    if (events.length === 0) return { found, next }
    position = next
  }
}

describe.each(forms)('the outbox in $form', ({ open }) => {
  it('keeps events in the order of their transactions, whatever the clock does', async () => {
    await using db = await open()
    const log = logOf(db.sql)
    const empty = await readAll(log)
    await append(db.sql, 1, 2)
    await db.setTime(start - dayMs)
    await append(db.sql, 3)
    await db.setTime(start + 5)
    await append(db.sql, 4, 'text', 5)
    const { events } = await log.page({ limit: 10, reader })
    expect(dataOf(events)).toEqual([1, 2, 3, 4, 'text', 5])
    const ids = events.map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted())
    expect(new Set(ids).size).toBe(6)
    const times = ids.map((id) => Date.parse(instantOf(id)))
    expect(times).toEqual([start, start, start, start + 5, start + 5, start + 5])
    expect(events.map(({ at }) => Date.parse(at))).toEqual(times)
    expect((await readAll(log, empty.next)).found).toEqual([1, 2, 3, 4, 'text', 5])
    const texts = await log.page({ types: ['string'], limit: 10, reader })
    expect(dataOf(texts.events)).toEqual(['text'])
    expect((await readAll(log, await log.end())).found).toEqual([])
  })

  it('leads a reader past any number of events that are hidden from it', async () => {
    await using db = await open()
    const hidden = Array.from({ length: 1_100 }, (_, at) => at)
    await append(db.sql, ...hidden, 'shown')
    const log = logOf(db.sql, (data) => data === 'shown')
    expect((await readAll(log)).found).toEqual(['shown'])
  })

  it('records nothing of a transaction that fails', async () => {
    await using db = await open()
    const fails = db.sql.transaction(async (transaction) => {
      await appendEvents(transaction, [{ type: 'number', data: 1 }])
      throw new Error('refused')
    })
    await expect(fails).rejects.toThrow('refused')
    await append(db.sql, 2)
    expect((await readAll(logOf(db.sql))).found).toEqual([2])
  })

  it('deletes events after 30 days, and says so to readers that have missed some', async () => {
    await using db = await open()
    const log = logOf(db.sql)
    const { next: beforeAll } = await readAll(log)
    await append(db.sql, 1)
    const { next: afterFirst } = await readAll(log)
    await append(db.sql, 2)
    await db.setTime(start + 30 * dayMs - 1)
    await append(db.sql, 'in time')
    expect((await readAll(log, afterFirst)).found).toEqual([2, 'in time'])
    expect((await readAll(log)).found).toEqual([1, 2, 'in time'])
    await db.setTime(start + 30 * dayMs + 1)
    const expired = { status: 410, code: 'events_expired' }
    await expect(readAll(log, beforeAll), 'before they are deleted').rejects.toMatchObject(expired)
    expect((await readAll(log)).found).toEqual(['in time'])
    await db.setTime(start + 30 * dayMs + 60_000)
    await append(db.sql, 3)
    expect(await db.sql.all(countEvents)).toEqual([{ count: 2 }])
    await expect(readAll(log, beforeAll)).rejects.toMatchObject(expired)
    await expect(readAll(log, afterFirst)).rejects.toMatchObject(expired)
    const { found, next } = await readAll(log)
    expect(found).toEqual(['in time', 3])
    await db.setTime(start + 300 * dayMs)
    const later = await readAll(log, next)
    expect(later.found, 'nothing has been missed').toEqual([])
    await append(db.sql, 4)
    expect((await readAll(log, later.next)).found).toEqual([4])
    await expect(readAll(log, next)).rejects.toMatchObject(expired)
  })

  it('finds what a reader may see among many hidden events, page by page', async () => {
    await using db = await open()
    const log = logOf(db.sql, (number) => Number(number) % 400 === 399)
    await append(db.sql, ...Array.from({ length: 1_300 }, (_, number) => number))
    const first = await log.page({ limit: 2, reader })
    const last = await log.page({ after: first.next, limit: 2, reader })
    expect([dataOf(first.events), first.isEnd]).toEqual([[399, 799], false])
    expect([dataOf(last.events), last.isEnd]).toEqual([[1199], true])
  })

  it('refuses a position that is older than 30 days, although no event after it was deleted', async () => {
    await using db = await open()
    const log = logOf(db.sql)
    await append(db.sql, 1)
    const old = readAll(log, '01ARZ3NDEKTSV4RRFFQ69G5FAV')
    await expect(old).rejects.toMatchObject({ status: 410, code: 'events_expired' })
  })

  it('leads on those who followed next while the clock was far ahead', async () => {
    await using db = await open()
    const log = logOf(db.sql)
    await append(db.sql, 1)
    await db.setTime(start + 60 * dayMs)
    const { next } = await readAll(log)
    await db.setTime(start + 1)
    await append(db.sql, 2)
    expect((await readAll(log, next)).found).toContain(2)
  })

  it('lets those who follow next go on where nothing happens for longer than 30 days', async () => {
    await using db = await open()
    const log = logOf(db.sql)
    let { next } = await readAll(log)
    for (const days of [14, 28, 42, 56]) {
      await db.setTime(start + days * dayMs)
      next = (await readAll(log, next)).next
    }
    await append(db.sql, 1)
    expect((await readAll(log, next)).found).toEqual([1])
  })

  it('shows no reader an event before an earlier one, with processes that commit out of order', async () => {
    await using db = await open()
    const processes = await Promise.all([db.another(), db.another(), db.another()])
    const log = logOf(db.sql)
    let isWriting = true
    // Four at a time, as many as a process has connections.
    const lanes = processes.flatMap((process, at) =>
      [0, 5, 10, 15].map(async (first) => {
        for (let number = first; number < first + 5; number++)
          await process.transaction(async (transaction) => {
            for (let turns = (number * 7 + at * 3) % 11; turns > 0; turns--) await turn()
            await appendEvents(transaction, [{ type: 'number', data: at * 100 + number }])
            for (let turns = (number * 5 + at) % 13; turns > 0; turns--) await turn()
          })
      }),
    )
    const seen: unknown[] = []
    const follow = async () => {
      for (let position: string | undefined; ; ) {
        await turn()
        const isLast = !isWriting
        const { found, next } = await readAll(log, position)
        seen.push(...found)
        position = next
        if (isLast) return
      }
    }
    const following = follow()
    await Promise.all(lanes)
    isWriting = false
    await following
    expect(seen).toHaveLength(60)
    expect(new Set(seen).size).toBe(60)
    expect(seen).toEqual((await readAll(log)).found)
  })
})

it('finds rare events by an index, frequent ones in the order of ids, without collecting either', async () => {
  await using db = await forms[0].open()
  const planOf = async (types: string[]) => {
    const steps = await db.sql.all<{ detail: string }>(sql`explain query plan
      select data from ${name('events')} where id > ${''} and ${ofTypes(types)} order by id limit 500`)
    return steps.map(({ detail }) => detail)
  }
  expect(await planOf(['link.used_up'])).toEqual(['SEARCH events USING INDEX events_of_type (type=? AND id>?)'])
  const inOrder = ['SEARCH events USING INDEX sqlite_autoindex_events_1 (id>?)']
  expect(await planOf(['files.changed'])).toEqual(inOrder)
  expect(await planOf(['files.changed', 'version.created', 'link.used_up'])).toEqual(inOrder)
})
