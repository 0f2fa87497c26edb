import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { AttemptLimit } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { LinkHandler } from '../../src/serving/link-handler.ts'

const requestOf = (digit: string) =>
  Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: `/l/${digit.repeat(22)}` })

test('unknown links are limited by the network of the client, before they are looked up', async () => {
  const looked: string[] = []
  // Only what an unknown link needs.
  const parts = {
    links: { find: async (token: string) => void looked.push(token) },
    clientAddress: ({ url = '' }) => (url.includes('B') ? '192.0.2.2' : '192.0.2.1'),
    limit: new AttemptLimit(2, { now: () => 1 }),
  } as unknown as ConstructorParameters<typeof LinkHandler>[0]
  const handler = new LinkHandler(parts)
  const open = (digit: string) => handler.respond(requestOf(digit))

  for (const digit of ['A', 'A']) await expect(open(digit)).rejects.toMatchObject({ status: 404 })
  await expect(open('A')).rejects.toMatchObject({ status: 429, code: 'too_many_requests' })
  await expect(open('B')).rejects.toMatchObject({ status: 404 })
  expect(looked).toHaveLength(3)
})

test('a download is refused where another one took the last after the link was found', async () => {
  // Only what a link to a file needs.
  const handler = new LinkHandler({
    links: { find: async () => ({ path: 'a.txt', downloadsLeft: 1 }), admit: async () => false },
    clientAddress: () => '192.0.2.1',
    findCaller: async () => ({ role: 'viewer' }),
    handler: {
      respondWith: (
        _request: unknown,
        _target: unknown,
        { admit }: { admit: (isFromStart: boolean) => Promise<void> },
      ) => admit(true),
    },
  } as unknown as ConstructorParameters<typeof LinkHandler>[0])

  await expect(handler.respond(requestOf('A'))).rejects.toMatchObject({ status: 404, code: 'link_not_found' })
})

test('the page of a large folder tells how many files it does not list', async () => {
  // Only what a link to a folder needs.
  const handler = new LinkHandler({
    links: { find: async () => ({ path: 'a/', name: null, downloadsLeft: null }) },
    clientAddress: () => '192.0.2.1',
    findCaller: async () => ({ role: 'viewer' }),
    catalog: { reads: { list: async () => ({ rows: [{ path: 'a/b.txt', size: 1 }], total: 3 }) } },
  } as unknown as ConstructorParameters<typeof LinkHandler>[0])

  expect(String((await handler.respond(requestOf('A'))).body)).toContain('and 2 more')
})
