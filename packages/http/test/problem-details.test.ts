import { DatabaseFullError, DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'
import { expect, it } from 'vitest'
import { createApp, createLogger } from '../src/index.ts'
import { start } from './support/start.ts'

it.each([
  [new DatabaseUnavailableError(new Error('refused')), 503, 'unavailable', '2'],
  [Object.assign(new Error('write failed'), { code: 'EIO' }), 503, 'unavailable', '2'],
  [Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_READ' }), 503, 'unavailable', '2'],
  [Object.assign(new Error('damaged file system'), { code: 'Unknown system error -117' }), 503, 'unavailable', '2'],
  [Object.assign(new Error('no such folder'), { code: 'ENOENT' }), 503, 'unavailable', '2'],
  [
    new SuppressedError(new Error('not closed'), Object.assign(new Error('write failed'), { code: 'EIO' })),
    503,
    'unavailable',
    '2',
  ],
  [Object.assign(new Error('disk full'), { code: 'ENOSPC' }), 507, 'insufficient_storage', undefined],
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

it('answers an error of a library that has a status and headers with a bare 500, as every bug', async () => {
  const refused = Object.assign(new Error('upstream refuses'), {
    statusCode: 403,
    headers: { 'set-cookie': 'upstream=secret', 'content-length': '3' },
  })
  await using service = await start({}, (app) => {
    const options = { config: { access: 'public' as const }, schema: { hide: true } }
    app.get('/failing', options, async () => {
      throw refused
    })
  })

  const response = await fetch(`${service.url}/failing`)

  expect([response.status, await response.json()]).toMatchObject([500, { code: 'internal_error' }])
  expect(response.headers.getSetCookie()).toEqual([])
  const failed = service.lines().filter(({ msg }) => msg === 'request failed')
  expect(failed).toMatchObject([{ level: 'error', err: { message: 'upstream refuses' } }])
})
