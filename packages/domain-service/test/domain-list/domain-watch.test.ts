import { name, sql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { DomainListStore } from '../../src/domain-list/list-store.ts'
import { ledgers } from '../support/ledgers.ts'

const dayMs = 86_400_000
const today = Date.UTC(2027, 0, 15)

const entry = (domain: string, expires_on: string | null) => ({
  name: domain,
  id: domain,
  created_on: '2020-01-01',
  expires_on,
  is_expired: false,
  is_locked: false,
  auto_renew: true,
  whois_guard: null,
  is_premium: false,
  uses_registrar_dns: true,
})

test.each(ledgers)(
  '%s: domains that come, go and expire soon are events, each threshold once for a date',
  async (_name, openForm) => {
    const { sql: database } = await openForm()
    const store = new DomainListStore(database, 'account')
    const addList = async (entries: ReturnType<typeof entry>[], nowMs: number) => {
      const times = { startedAt: nowMs, completedAt: nowMs }
      const total = entries.length
      await store.addPage({ ...times, total, hasChanged: false, pages: [entries] })
    }
    const readList = async (entries: ReturnType<typeof entry>[], nowMs: number) => {
      await addList(entries, nowMs)
      // Replicas can look at once, and look again.
      await Promise.all([store.recordEvents(nowMs), store.recordEvents(nowMs)])
    }
    let seen = ''
    const newEvents = async () => {
      const rows = await database.all<{ id: string; type: string; data: string }>(
        sql`select id, type, data from ${name('events')} where id > ${seen} order by id`,
      )
      seen = rows.at(-1)?.id ?? seen
      return rows.map(({ type, data }) => {
        const { domain, days_left } = JSON.parse(data)
        return [type, domain.name, ...(days_left === undefined ? [] : [days_left])].join(' ')
      })
    }
    const late = entry('late.com', '2028-01-15')
    const never = entry('never.com', null)
    const [near, far] = [entry('near.com', '2027-02-20'), entry('far.com', '2027-03-22')]
    const rest = [late, never, entry('soon.com', '2027-02-04'), near, far]

    await readList([...rest, entry('over.com', '2027-01-14')], today)
    expect(await newEvents(), 'the first list').toEqual(['domain.expiring soon.com 20', 'domain.expiring near.com 36'])
    await readList([...rest, entry('new.com', '2027-01-15')], today + 5 * dayMs + 1)
    expect(await newEvents()).toEqual(['domain.added new.com', 'domain.removed over.com'])
    const told: string[] = []
    for (let day = 6; day <= 21; day++) {
      // Just after midnight, or just before the next one.
      await readList(rest, today + day * dayMs + (day % 2 === 0 ? day : dayMs - 1))
      told.push(...(await newEvents()))
    }
    expect(told).toEqual([
      'domain.expiring soon.com 14',
      'domain.expiring near.com 30',
      'domain.expiring far.com 60',
      'domain.removed new.com',
      ...[7, 3, 1].map((days) => `domain.expiring soon.com ${days}`),
    ])
    const others = [entry('soon.com', '2027-02-09'), entry('near.com', '2027-03-01')]
    await readList([late, never, ...others], today + 22 * dayMs)
    expect(await newEvents(), 'another date').toEqual([
      'domain.expiring soon.com 3',
      'domain.expiring near.com 23',
      'domain.removed far.com',
    ])
    // A process ended after it had read the list.
    await addList([late, entry('brief.com', null)], today + 23 * dayMs)
    await readList([late, never], today + 23 * dayMs + 1)
    expect(await newEvents(), 'beside the last list of events').toEqual([
      'domain.removed soon.com',
      'domain.removed near.com',
    ])
    // A list that came and went while it was read, whoever read it.
    const first = { startedAt: today, total: 2, hasChanged: false, pages: [[late]] }
    const changed = await store.addPage(first)
    const { partial } = await new DomainListStore(database, 'account').load()
    expect(partial).toEqual({ ...first, id: changed, completedAt: null })
    const last = { total: 1, hasChanged: true, pages: [[late], []], completedAt: today }
    await store.addPage({ ...first, ...last, id: changed })
    await new DomainListStore(database, 'account').recordEvents(today + 23 * dayMs + 2)
    expect(await newEvents(), 'perhaps never.com is only not in the list').toEqual([])
    expect((await store.load()).complete).toMatchObject({ id: changed, hasChanged: true })
    await readList([late, never], today)
    await readList([late, never, entry('soon.com', '2027-02-09')], today + 24 * dayMs)
    expect(await newEvents(), 'after a clock that was wrong').toEqual([
      'domain.added soon.com',
      'domain.expiring soon.com 1',
    ])
  },
)
