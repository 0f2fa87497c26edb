import { expect, test, vi } from 'vitest'
import { frameworkLogger } from '../../src/logging/access-log.ts'
import { createLogger } from '../../src/logging/logger.ts'

function createChild(level: string) {
  const lines: string[] = []
  const log = createLogger({ name: 'things', level }, { write: (line) => lines.push(line) })
  const create = vi.spyOn(log, 'child')
  return { child: frameworkLogger(log).child({ request_id: 'r1' }), create, lines }
}

test('lines of one request are written by one child logger, each at its level', () => {
  const { child, create, lines } = createChild('trace')

  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const)
    child[level]({ at: level }, 'a step')

  expect(create).toHaveBeenCalledOnce()
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => ({
      level,
      at: level,
      request_id: 'r1',
      msg: 'a step',
    })),
  )
})

test('a child of a child is lazy, too, and its lines have the fields of both', () => {
  const { child, create, lines } = createChild('info')
  const inner = child.child({ part: 'a' })

  expect(create).not.toHaveBeenCalled()
  inner.info('done')

  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'info', request_id: 'r1', part: 'a', msg: 'done' },
  ])
})

test('a line of a level that is off creates no child logger', () => {
  const { child, create, lines } = createChild('info')

  child.debug('a step')
  child.trace({ at: 'trace' }, 'a step')

  expect(create).not.toHaveBeenCalled()
  expect(lines).toEqual([])
})
