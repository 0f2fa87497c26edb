import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dateFor } from '../../../src/catalog/changes/loaded-files.ts'

const start = Date.parse('2026-03-01T12:00:00.000Z')

test('at one path dates never go backwards, and a client that has one never has that of what follows', () => {
  const step = fc.record({
    act: fc.constantFrom('store' as const, 'remove' as const, 'elsewhere' as const),
    clockMs: fc.integer({ min: -5000, max: 5000 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      let [latest, current, given]: [string, string | undefined, string] = ['', undefined, '']
      for (const { act, clockMs } of steps) {
        const now = start + clockMs
        const dates = { clock: new Date(now).toISOString(), latest }
        if (act === 'elsewhere') dateFor(dates)
        else if (act === 'store') {
          const date = dateFor(dates, current)
          expect(date >= given).toBe(true)
          // A date is given to clients once its second is over.
          const isSeen = given !== '' && Date.parse(given.slice(0, 19)) + 1000 <= now
          if (isSeen) expect(date.slice(0, 19) > given.slice(0, 19)).toBe(true)
          current = date
          given = date
        } else if (current) {
          dateFor(dates, current)
          current = undefined
        }
        latest = dates.latest
      }
    }),
  )
})

test('a clock that goes on gives its own time', () => {
  const dates = { clock: new Date(start).toISOString(), latest: '2026-03-01T11:59:59.999Z' }

  expect(dateFor(dates, '2026-03-01T11:59:59.999Z')).toBe('2026-03-01T12:00:00.000Z')
})
