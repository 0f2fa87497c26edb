import { connect } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AccessEntry, AccessLog } from '../../src/logging/access-log.ts'
import { createLogger } from '../../src/logging/logger.ts'
import { start } from '../support/start.ts'

function logTo(level = 'info') {
  const lines: string[] = []
  const log = createLogger({ name: 'things', level }, { write: (line) => lines.push(line) })
  return { accessLog: new AccessLog(log), lines }
}

const entry: AccessEntry = {
  requestId: 'r1',
  method: 'GET',
  url: '/things?secret=1',
  status: 200,
  ms: 1.26,
  client: '127.0.0.1',
}

test('a line has every field of the request, and not its query', () => {
  const { accessLog, lines } = logTo()

  accessLog.completed({ ...entry, principal: { user: 'alice', token: 'ci' } })

  const [line = ''] = lines
  expect(line.endsWith('}\n')).toBe(true)
  expect(JSON.parse(line)).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    name: 'things',
    request_id: 'r1',
    method: 'GET',
    path: '/things',
    status: 200,
    ms: 1.3,
    client: '127.0.0.1',
    user: 'alice',
    token_name: 'ci',
    msg: 'request completed',
  })
})

test('whatever a client sends, the line is one line of JSON that says exactly that', () => {
  const text = fc.string({ unit: 'binary' })
  const { accessLog, lines } = logTo()
  fc.assert(
    fc.property(text, text, text, text, (requestId, path, client, user) => {
      const url = path.replaceAll('?', '')

      accessLog.completed({ ...entry, requestId, url, client, principal: { user } })

      const line = lines.pop() ?? ''
      expect(line.indexOf('\n')).toBe(line.length - 1)
      expect(JSON.parse(line)).toMatchObject({ request_id: requestId, path: url, client, user })
    }),
  )
})

test('above level info nothing is logged', () => {
  expect(logTo('warn').accessLog.isEnabled).toBe(false)
  expect(logTo('info').accessLog.isEnabled).toBe(true)
})

test('a client that leaves before its response is logged once, as aborted', async () => {
  await using service = await start()
  const client = connect(Number(new URL(service.url).port), '127.0.0.1')
  client.write('GET /slow HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n')
  await service.slowEntered()

  client.resetAndDestroy()

  const logged = () => service.lines().filter(({ request_id }) => request_id === 'mine')
  await expect
    .poll(logged)
    .toMatchObject([{ level: 'warn', path: '/slow', client: '127.0.0.1', msg: 'request aborted' }])
  service.releaseSlow()
})
