import { IncomingMessage, ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createMetrics } from '../../src/index.ts'
import { AccessLog, type Exchange } from '../../src/logging/access-log.ts'
import { createLogger } from '../../src/logging/logger.ts'
import { start } from '../support/start.ts'

function logTo(level = 'info') {
  const lines: string[] = []
  const log = createLogger({ name: 'things', level }, { write: (line) => lines.push(line) })
  return { accessLog: new AccessLog(log), lines }
}

function requestFrom(client: string) {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: client })
  return new IncomingMessage(socket)
}

const request = requestFrom('127.0.0.1')
const exchange: Exchange = {
  requestId: 'r1',
  method: 'GET',
  url: '/things?secret=1',
  route: '/things',
  request,
  response: new ServerResponse(request),
  began: performance.now(),
}

const completed = { isAborted: false }

test('a line has every field of the request, and not its query', () => {
  const { accessLog, lines } = logTo()

  accessLog.record({ ...exchange, principal: { username: 'alice', token: { name: 'ci' } } }, completed)

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
    ms: expect.any(Number),
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

      const sent = { requestId, url, request: requestFrom(client), principal: { username: user } }
      accessLog.record({ ...exchange, ...sent }, completed)

      const line = lines.pop() ?? ''
      expect(line.indexOf('\n')).toBe(line.length - 1)
      expect(JSON.parse(line)).toMatchObject({ request_id: requestId, path: url, client, user })
    }),
  )
})

test('above level info only what was aborted is logged', () => {
  const { accessLog, lines } = logTo('warn')

  accessLog.record(exchange, completed)
  accessLog.record(exchange, { isAborted: true })

  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['request aborted'])
})

test.each([
  ['cannot be decoded', 'GET', '/%zz', 400, 'malformed_url'],
  ['has a part that is too long', 'POST', `/things/${'a'.repeat(2000)}`, 414, 'url_too_long'],
])('a request whose URL %s is logged, with its client, and counted', async (_what, method, path, status, code) => {
  const metrics = await createMetrics('metrics-token-1234')
  await using service = await start({ metrics, trustProxy: true })

  const headers = 'Host: x\r\nX-Request-Id: mine\r\nX-Forwarded-For: 192.0.2.7\r\n'
  await service.raw(`${method} ${path} HTTP/1.1\r\n${headers}\r\n`, code)

  const logged = () => service.lines().filter(({ request_id }) => request_id === 'mine')
  await expect.poll(logged).toMatchObject([{ level: 'info', path, status, client: '192.0.2.7' }])
  const counted = await metrics?.registry.metrics()
  expect(counted).toContain(`_count{method="${method}",route="unmatched",status="${status}"} 1`)
  expect(counted).toContain(`http_problems_total{code="${code}"} 1`)
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
