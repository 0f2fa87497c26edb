import {
  DatabaseFullError,
  DatabaseUnavailableError,
  OutcomeUnknownError,
} from '@domains-and-files/persistence'
import { expect, it } from 'vitest'
import { createApp, createLogger } from '../src/index.ts'

it.each([
  [new DatabaseUnavailableError(new Error('refused')), 503, 'unavailable', '2'],
  [Object.assign(new Error('write failed'), { code: 'EIO' }), 503, 'unavailable', '2'],
  [
    Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_READ' }),
    503,
    'unavailable',
    '2',
  ],
  [
    Object.assign(new Error('damaged file system'), { code: 'Unknown system error -117' }),
    503,
    'unavailable',
    '2',
  ],
  [Object.assign(new Error('no such folder'), { code: 'ENOENT' }), 503, 'unavailable', '2'],
  [
    new SuppressedError(
      new Error('not closed'),
      Object.assign(new Error('write failed'), { code: 'EIO' }),
    ),
    503,
    'unavailable',
    '2',
  ],
  [
    Object.assign(new Error('disk full'), { code: 'ENOSPC' }),
    507,
    'insufficient_storage',
    undefined,
  ],
  [new OutcomeUnknownError(new Error('reset')), 503, 'outcome_unknown', '5'],
  [new DatabaseFullError(new Error('full')), 507, 'insufficient_storage', undefined],
  [Object.assign(new Error('0x00'), { code: '22021' }), 400, 'validation_failed', undefined],
])(
  'answers a failure of the database on any route, and logs its cause: %s',
  async (error, status, code, retryAfter) => {
    const lines: string[] = []
    const app = await createApp(
      {
        about: { title: 'Things', version: '1.2.3', description: 'a test' },
        log: createLogger({ name: 'things', level: 'warn' }, { write: (line) => lines.push(line) }),
        trustProxy: false,
        corsOrigin: [],
        metrics: undefined,
        health: () => ({ checks: {} }),
      },
      async (routes) => {
        const config = { access: 'public' } as object // Access control is not registered here.
        routes.get('/failing', { config, schema: { operationId: 'fail' } }, async () => {
          throw error
        })
      },
    )
    const response = await app.inject('/failing')
    expect(response.statusCode).toBe(status)
    expect(response.json()).toMatchObject({ status, code })
    expect(response.headers['retry-after']).toBe(retryAfter)
    const refusals = lines.filter((line) => line.includes('"request refused"'))
    expect(refusals.map((line) => JSON.parse(line))).toMatchObject(
      status < 500 ? [] : [{ code, err: { message: expect.stringMatching(/./) } }],
    )
    await app.close()
  },
)
