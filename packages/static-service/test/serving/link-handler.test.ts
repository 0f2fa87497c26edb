import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { LinkHandler } from '../../src/serving/link-handler.ts'

const requestOf = (digit: string) =>
  Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: `/l/${digit.repeat(22)}` })

test('a download is refused where another one took the last after the link was found', async () => {
  // Only what a link to a file needs.
  const handler = new LinkHandler({
    links: { find: async () => ({ path: 'a.txt', downloadsLeft: 1 }), admit: async () => false },
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
    findCaller: async () => ({ role: 'viewer' }),
    catalog: { reads: { list: async () => ({ rows: [{ path: 'a/b.txt', size: 1 }], total: 3 }) } },
  } as unknown as ConstructorParameters<typeof LinkHandler>[0])

  expect(String((await handler.respond(requestOf('A'))).body)).toContain('and 2 more')
})
