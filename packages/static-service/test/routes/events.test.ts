import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemClock } from '@domains-and-files/http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { start } from '../support/start.ts'
import { digestOf } from '../support/stored-contents.ts'

const Page = z.object({
  events: z.array(
    z.looseObject({
      id: z.string(),
      type: z.string(),
      by: z.string().nullable(),
      request_id: z.string().nullable(),
      data: z.looseObject({ id: z.number(), action: z.string().optional() }),
    }),
  ),
  next: z.string(),
})

test('each change of files and each version is an event, for those who see its folders', async () => {
  await using service = await start()
  const read = async (token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const { bytes } = await service.call('GET', '/api/events', { headers })
    return Page.parse(JSON.parse(bytes.toString())).events
  }
  await service.put('docs/1.txt', 'one', { headers: { 'x-request-id': 'the-first' } })
  await service.put('site/2.txt', 'two', { user: 'editor' })
  await service.call('POST', '/api/files/move', { json: { from: 'site/2.txt', to: 'docs/2.txt' } })
  await service.call('DELETE', '/api/files/missing.txt')
  await service.call('POST', '/api/versions', {
    json: { version: '1', changelog: 'one' },
    headers: { 'x-request-id': 'the-last' },
  })
  const events = await read()
  expect(events.map(({ type, by, data }) => [type, by, data.action])).toEqual([
    ['files.changed', 'admin', 'upload'],
    ['files.changed', 'editor', 'upload'],
    ['files.changed', 'admin', 'move'],
    ['version.created', 'admin', undefined],
  ])
  expect([events[0]?.request_id, events[3]?.request_id]).toEqual(['the-first', 'the-last'])
  const { bytes } = await service.call('GET', '/api/changes')
  const { changes } = z.object({ changes: z.array(z.unknown()) }).parse(JSON.parse(bytes.toString()))
  expect(events.slice(0, 3).map(({ data }) => data)).toEqual(changes.toReversed())

  const made = await service.call('POST', '/api/tokens', {
    json: { name: 'docs', role: 'viewer', folders: ['docs/'] },
  })
  const { token } = z.object({ token: z.string() }).parse(JSON.parse(made.bytes.toString()))
  const own = await read(token)
  expect(own.map(({ id }) => id)).toEqual([events[0]?.id, events[2]?.id, events[3]?.id])
  expect(own[0]).toEqual(events[0])
  expect(own[1]?.data).toMatchObject({ action: 'move', paths: ['docs/2.txt'] })
  expect(JSON.stringify(own)).not.toContain('site/')
})

test('a change of many directories is an event for those who see some, with nothing of the others', async () => {
  await using service = await start()
  const names = Array.from({ length: 101 }, (_, at) => `a/${at}/${'b/'.repeat(at % 3)}f`)
  await service.call('PUT', `/api/contents/${digestOf('x')}`, { body: 'x' })
  const deploy = (paths: string[]) => {
    const files = Object.fromEntries(paths.map((path) => [path, { sha256: digestOf('x') }]))
    return service.call('PUT', '/api/trees/?mode=merge', { json: { files } })
  }
  const seenBy = async (folder: string) => {
    const json = { name: folder, role: 'viewer', folders: [folder] }
    const { body } = await service.call('POST', '/api/tokens', { json })
    const headers = { authorization: `Bearer ${body.token}` }
    const { bytes } = await service.call('GET', '/api/events', { headers })
    const { events } = JSON.parse(bytes.toString())
    return events.map(({ data }: { data: object }) => data)
  }
  expect((await deploy([...names, 'z/f'])).status).toBe(200)

  expect(await seenBy('z')).toMatchObject([{ prefix: null, paths: [] }])
  const [first] = await seenBy('a')
  expect(first).toMatchObject({ prefix: null, paths: expect.arrayContaining(['a/0/f']) })
  expect(first).not.toHaveProperty('added')
  expect(await seenBy('elsewhere')).toEqual([])
})

test('a link that is used up is an event, once, for its maker and admins of its folder', async () => {
  await using service = await start()
  const call = async (method: string, path: string, options: object = {}) =>
    JSON.parse(String((await service.call(method, path, options)).bytes))
  await service.put('docs/1.txt', 'one')
  const json = { path: 'docs/1.txt', downloads: 1 }
  const { url, ...link } = await call('POST', '/api/links', { json, user: 'editor' })
  const limits = { name: 'site', role: 'admin', folders: ['site/'] }
  const { token } = await call('POST', '/api/tokens', { json: limits })
  const read = async (options = {}) => (await call('GET', '/api/events?types=link.used_up', options)).events

  for (let count = 0; count < 2; count++) await service.call('GET', url)
  const isTold = { by: null, request_id: null, data: { ...link, downloads_left: 0 } }
  await expect.poll(() => read()).toMatchObject([isTold])

  expect(await read({ user: 'editor' })).toMatchObject([isTold])
  expect(await read({ user: 'viewer' })).toEqual([])
  expect(await read({ headers: { authorization: `Bearer ${token}` } })).toEqual([])
})

test('links that are used up at once are events without waiting for the next check', async () => {
  const timers = vi.spyOn(systemClock, 'setTimer').mockReturnValue({ cancel: () => undefined })
  onTestFinished(() => timers.mockRestore())
  await using service = await start()
  const call = async (method: string, path: string, options: object = {}) =>
    JSON.parse(String((await service.call(method, path, options)).bytes))
  await service.put('one.txt', 'one')
  const json = { path: 'one.txt', downloads: 1 }
  const links = await Promise.all(Array.from({ length: 12 }, () => call('POST', '/api/links', { json })))

  await Promise.all(links.map(({ url }) => service.call('GET', url)))

  await expect.poll(async () => (await call('GET', '/api/events?types=link.used_up')).events.length).toBe(12)
})

test('a webhook of some folders gets what happens in them', async () => {
  const env = { WEBHOOK_HTTP: 'true', WEBHOOK_NETWORKS: '127.0.0.0/8' }
  await using service = await start({ env })
  const bodies: string[] = []
  await using receiver = createServer(async (request, response) => {
    for await (const chunk of request.setEncoding('utf8')) bodies.push(chunk)
    response.end()
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo // It listens on a port.
  const json = { url: `http://127.0.0.1:${port}/`, folders: ['docs'], types: ['files.changed'] }
  expect((await service.call('POST', '/api/webhooks', { json })).status).toBe(201)
  await service.put('site/1.txt', 'one')
  await service.put('docs/2.txt', 'two')
  await expect.poll(() => bodies.length).toBe(1)
  expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ data: { paths: ['docs/2.txt'] } })
  receiver.closeAllConnections()
})
