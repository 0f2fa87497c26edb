import { expect, test } from 'vitest'
import { retryingFetch } from '../src/session.ts'

const url = 'http://127.0.0.1/api'

/** A retrying fetch over scripted responses, with the bodies that were sent and the waits. */
function script(responses: Response[]) {
  const bodies: string[] = []
  const waits: number[] = []
  const send = retryingFetch(
    async (request) => {
      bodies.push(await request.text())
      const response = responses[bodies.length - 1]
      if (!response) throw new Error('no response left')
      return response
    },
    async (milliseconds) => void waits.push(milliseconds),
  )
  return { send, bodies, waits }
}

const busy = (seconds?: string) =>
  new Response('{}', { status: 503, headers: seconds ? { 'retry-after': seconds } : {} })

test('an idempotent request is repeated after Retry-After, with its body', async () => {
  const { send, bodies, waits } = script([busy('3'), busy('1'), new Response('done')])

  const response = await send(new Request(url, { method: 'PUT', body: 'content' }))

  expect(await response.text()).toBe('done')
  expect(bodies).toEqual(['content', 'content', 'content'])
  expect(waits).toEqual([3000, 1000])
})

test('a POST is repeated only with an Idempotency-Key', async () => {
  const plain = script([busy('1')])
  const keyed = script([busy('1'), new Response('done')])

  const first = await plain.send(new Request(url, { method: 'POST', body: '{}' }))
  const second = await keyed.send(
    new Request(url, { method: 'POST', body: '{}', headers: { 'idempotency-key': 'one' } }),
  )

  expect(first.status).toBe(503)
  expect(second.status).toBe(200)
})

test.each([
  ['without Retry-After', busy()],
  ['with a Retry-After longer than the maximum', busy('121')],
  ['with an HTTP-date', busy('Sun, 06 Nov 1994 08:49:37 GMT')],
])('a 503 %s is returned', async (_name, response) => {
  const { send, waits } = script([response])

  expect((await send(new Request(url))).status).toBe(503)
  expect(waits).toEqual([])
})

test('after the last attempt the response is returned', async () => {
  const { send, bodies } = script(Array.from({ length: 6 }, () => busy('0')))

  expect((await send(new Request(url))).status).toBe(503)
  expect(bodies).toHaveLength(5)
})
