import { expect, test } from 'vitest'
import { type EarlyResponder, type EarlyResponse, prepareHead } from '../../src/index.ts'
import { start } from '../support/start.ts'

const responder = (respond: EarlyResponder['respond']): EarlyResponder => ({
  prefix: '/things',
  route: '/things',
  respond,
})

const early = (): EarlyResponse => ({
  head: prepareHead(200, { 'content-length': '5' }),
  body: 'early',
})

test.each<[string, EarlyResponder['respond'], string]>([
  ['a response', early, 'early'],
  ['a response after a look-up', async () => early(), 'early'],
  ['nothing', () => undefined, '"things"'],
  ['nothing after a look-up', async () => undefined, '"things"'],
  ['a failure', () => Promise.reject(new Error('no database')), '"things"'],
])('%s of the responder leads to one complete answer', async (_what, respond, expected) => {
  await using service = await start({ early: responder(respond) })

  const answer = await fetch(`${service.url}/things`, { headers: { 'x-request-id': 'mine' } })

  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-request-id')).toBe('mine')
  expect(await answer.text()).toContain(expected)
  expect(service.lines().filter(({ msg }) => msg === 'request completed')).toHaveLength(1)
})

test('answers to pipelined requests keep their order, whichever look-up ends first', async () => {
  const first = Promise.withResolvers<EarlyResponse>()
  let count = 0
  const respond = () => {
    count += 1
    if (count === 1) return first.promise
    first.resolve({ ...early(), body: 'FIRST' })
    return early()
  }
  await using service = await start({ early: responder(respond) })
  const request = 'GET /things HTTP/1.1\r\nhost: x\r\n\r\n'

  const text = await service.raw(request + request, '\r\n\r\nearly')

  expect(text.indexOf('FIRST')).toBeGreaterThan(-1)
  expect(text.indexOf('FIRST')).toBeLessThan(text.indexOf('\r\n\r\nearly'))
})
