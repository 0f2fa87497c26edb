import type { FastifyBaseLogger } from 'fastify'
import { expect, test, vi } from 'vitest'
import { LazyLogger } from '../../src/logging/access-log.ts'
import { createLogger } from '../../src/logging/logger.ts'

function createLazy(level: string) {
  const lines: string[] = []
  const log = createLogger({ name: 'things', level }, { write: (line) => lines.push(line) })
  const create = vi.fn(() => log.child({ request_id: 'r1' }) as FastifyBaseLogger)
  return { lazy: new LazyLogger(log, create), create, lines }
}

test('a line below the level creates no child logger', () => {
  const { lazy, create, lines } = createLazy('info')

  lazy.debug('a step')
  lazy.trace({ detail: 1 }, 'a step')
  lazy.silent()

  expect(create).not.toHaveBeenCalled()
  expect(lines).toEqual([])
})

test('lines of one request are written by one child logger, each at its level', () => {
  const { lazy, create, lines } = createLazy('trace')

  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const)
    lazy[level]({ at: level }, 'a step')

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

test('a child is lazy, too, and its lines have the fields of both', () => {
  const { lazy, create, lines } = createLazy('info')
  const child = lazy.child({ part: 'a' })

  child.debug('a step')
  expect(create).not.toHaveBeenCalled()
  child.info('done')

  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'info', request_id: 'r1', part: 'a', msg: 'done' },
  ])
})
