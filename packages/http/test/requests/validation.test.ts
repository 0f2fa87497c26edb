import { expect, test } from 'vitest'
import { z } from 'zod'
import { describeIssue } from '../../src/index.ts'

test.each<[string, z.ZodType, unknown]>([
  ['must have at least 1 item', z.array(z.string()).min(1), []],
  ['must have at most 2 items', z.array(z.string()).max(2), ['a', 'b', 'c']],
  ['must have at most 1 character', z.string().max(1), 'ab'],
  ['must have at least 3 characters', z.string().min(3), 'ab'],
  ['must not be empty', z.string().min(1), ''],
  ['must be at most 1', z.number().max(1), 2],
  ['must be an object', z.object({}), []],
  ['must be an RFC 3339 time such as 2026-11-20T19:20:00Z', z.iso.datetime({ offset: true }), 'yesterday'],
])('a value that is not accepted %s', (message, schema, value) => {
  const { error } = schema.safeParse(value, { error: describeIssue, reportInput: true })

  expect(error?.issues.map((issue) => issue.message)).toEqual([message])
})
