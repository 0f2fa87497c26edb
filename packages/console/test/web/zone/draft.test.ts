import { describe, expect, test } from 'vitest'
import type { HostRecord, Zone } from '../../../web/api/schema.d.ts'
import {
  addChanges,
  addRecord,
  countEdits,
  editRow,
  emptyDraft,
  rebase,
  rowsOf,
  setRecord,
  settle,
  toPatch,
} from '../../../web/zone/draft.js'

const record = (id: string, name: string, address: string): HostRecord => ({
  id,
  name,
  type: 'A',
  address,
  ttl: 1800,
})
const www = record('aaa', 'www', '192.0.2.1')
const shop = record('bbb', 'shop', '192.0.2.2')
const zone: Zone = {
  domain: 'example.com',
  uses_registrar_dns: true,
  email_type: 'NONE',
  hosts: [www, shop],
}
const rowOf = (id: string, draft = emptyDraft) => {
  const row = rowsOf(zone, draft).find(({ key }) => key === id)
  if (!row) throw new Error(`no row ${id}`)
  return row
}
const nothing = { remove: [], update: [], add: [] }
const added = { name: 'new', type: 'A', address: '192.0.2.9', ttl: 300 }

describe('a draft', () => {
  test('becomes one patch of removals, edits and additions', () => {
    let draft = addRecord(emptyDraft, added)
    draft = setRecord(draft, 'aaa', null)
    draft = editRow(draft, rowOf('bbb'), { ...shop, address: '192.0.2.3' })

    expect(toPatch(draft, zone)).toEqual({
      remove: ['aaa'],
      update: [{ id: 'bbb', address: '192.0.2.3' }],
      add: [added],
    })
    expect(countEdits(draft)).toBe(3)
  })

  test('drops an edit that changes nothing', () => {
    const edited = editRow(emptyDraft, rowOf('bbb'), { ...shop, ttl: 60 })
    const back = editRow(edited, rowOf('bbb', edited), shop)

    expect(countEdits(edited)).toBe(1)
    expect(countEdits(back)).toBe(0)
  })

  test('shows additions first and keeps removed rows in sight', () => {
    const draft = setRecord(addRecord(emptyDraft, added), 'bbb', null)

    expect(rowsOf(zone, draft).map(({ state }) => state)).toEqual(['added', 'kept', 'removed'])
  })

  test('forgets what it does to one row', () => {
    const draft = addRecord(setRecord(emptyDraft, 'aaa', null), added)
    const added1 = rowsOf(zone, draft).find(({ state }) => state === 'added')

    expect(countEdits(setRecord(setRecord(draft, added1?.key ?? ''), 'aaa'))).toBe(0)
  })

  test('takes up the changes of a dry run, a changed record as an edit', () => {
    const draft = addChanges(emptyDraft, {
      removed: [www, shop],
      added: [{ ...www, ttl: 60 }, record('ccc', 'api', '192.0.2.4')],
    })

    expect(toPatch(draft, zone)).toEqual({
      remove: ['bbb'],
      update: [{ id: 'aaa', ttl: 60 }],
      add: [{ name: 'api', type: 'A', address: '192.0.2.4', ttl: 1800 }],
    })
  })
})

test('what is queued is marked until the zone has it', () => {
  const queued = { added: [record('ccc', 'api', '192.0.2.4'), www], removed: [shop] }

  const states = rowsOf(zone, emptyDraft, queued).map(({ key, state }) => [key, state])

  expect(states).toEqual([
    ['ccc', 'waiting'],
    ['aaa', 'kept'],
    ['bbb', 'leaving'],
  ])
})

test('an import adds nothing twice', () => {
  const changes = { removed: [], added: [record('ccc', 'api', '192.0.2.4')] }

  const once = addChanges(emptyDraft, changes)

  expect(addChanges(once, changes)).toEqual(once)
})

describe('a draft carried over to a newer zone', () => {
  test('drops what is already so and says it', () => {
    const draft = addRecord(setRecord(emptyDraft, 'aaa', null), added)
    const newer = { ...zone, hosts: [shop, record('ddd', 'new', '192.0.2.9')] }

    const outcome = rebase(draft, zone, newer)

    expect(countEdits(outcome.draft)).toBe(0)
    expect(outcome.notes).toEqual(['A www 192.0.2.1 is already gone.', 'A new 192.0.2.9 is already there.'])
  })

  test('turns an edit of a record that is gone into an addition', () => {
    const draft = editRow(emptyDraft, rowOf('bbb'), { ...shop, address: '192.0.2.3' })

    const newer = { ...zone, hosts: [www] }
    const outcome = rebase(draft, zone, newer)

    expect(toPatch(outcome.draft, newer)).toEqual({
      ...nothing,
      add: [{ name: 'shop', type: 'A', address: '192.0.2.3', ttl: 1800 }],
    })
    expect(outcome.notes).toHaveLength(1)
  })

  test('leaves a record that both changed to the choice between them', () => {
    const draft = editRow(emptyDraft, rowOf('bbb'), { ...shop, address: '192.0.2.3' })
    const theirs = record('fff', 'shop', '192.0.2.7')

    const newer = { ...zone, hosts: [www, theirs] }
    const { draft: rest, conflicts } = rebase(draft, zone, newer)

    expect([countEdits(rest), conflicts.length]).toEqual([0, 1])
    const patches = (['mine', 'theirs', 'both'] as const).map((choice) =>
      toPatch(
        settle(
          rest,
          conflicts.map((each) => ({ ...each, choice })),
        ),
        newer,
      ),
    )
    const mine = { name: 'shop', type: 'A', address: '192.0.2.3', ttl: 1800 }
    expect(patches).toEqual([
      { ...nothing, update: [{ id: 'fff', address: '192.0.2.3' }] },
      nothing,
      { ...nothing, add: [mine] },
    ])
  })

  test('keeps a record that somebody else changed, unless its removal is chosen again', () => {
    const theirs = record('fff', 'shop', '192.0.2.7')
    const newer = { ...zone, hosts: [www, theirs] }

    const { draft, notes, conflicts } = rebase(setRecord(emptyDraft, 'bbb', null), zone, newer)

    expect([notes, conflicts]).toEqual([[], [{ mine: null, theirs, choice: 'theirs' }]])
    expect(toPatch(settle(draft, conflicts), newer)).toEqual(nothing)
    const chosen = conflicts.map((each) => ({ ...each, choice: 'mine' as const }))
    expect(toPatch(settle(draft, chosen), newer)).toEqual({ ...nothing, remove: ['fff'] })
  })

  test('stays as it is where nothing touches it', () => {
    const draft = setRecord(emptyDraft, 'aaa', null)

    const outcome = rebase(draft, zone, {
      ...zone,
      hosts: [...zone.hosts, record('eee', 'x', '192.0.2.8')],
    })

    expect(outcome).toMatchObject({ notes: [] })
    expect(toPatch(outcome.draft, zone)).toEqual({ ...nothing, remove: ['aaa'] })
  })
})
