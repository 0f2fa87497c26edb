import { join } from 'node:path'
import { appendEvents } from '@domains-and-files/events'
import { SqliteSql } from '@domains-and-files/persistence'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { databaseName } from '../../src/ledger/schema.ts'
import { connect, databaseOf } from '../support/databases.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { type Service, start } from '../support/start.ts'

const Page = z.object({
  events: z.array(
    z.object({
      id: z.string(),
      type: z.string(),
      at: z.string(),
      by: z.string().nullable(),
      request_id: z.string().nullable(),
      data: z.looseObject({ domain: z.string().optional(), status: z.string().optional() }),
    }),
  ),
  next: z.string(),
})

async function read(service: Service, query = '', user = 'admin') {
  const { status, text } = await service.call('GET', `/api/events${query}`, { user })
  expect(status, text).toBe(200)
  return Page.parse(JSON.parse(text))
}

const hello = { name: 'hello', address: '192.0.2.10' }
const hosts = (domain = 'example.com') => `/api/domains/${domain}/dns/hosts/A`
const domains = [
  { name: 'example.com', hosts: [] },
  { name: 'example.org', hosts: [] },
]

/** An open stream: each call reads the text of the next so many blocks. */
async function openStream(service: Service, path: string, headers: Record<string, string> = {}) {
  const abort = new AbortController()
  const response = await fetch(service.url + path, {
    headers: {
      accept: 'text/event-stream',
      authorization: `Bearer ${await service.sessionOf('admin')}`,
      ...headers,
    },
    signal: abort.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const block = async (): Promise<string | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end !== -1) {
        const found = text.slice(0, end)
        text = text.slice(end + 2)
        return found
      }
      const chunk = await reader?.read()
      if (!chunk || chunk.done) return undefined
      text += chunk.value
    }
  }
  return { response, block, close: () => abort.abort() }
}

describe('GET /api/events', () => {
  it('tells of changes as GET /api/changes does, to those who see their domains', async () => {
    await using service = await start({ domains })
    const { next: beginning } = await read(service)
    await service.call('POST', hosts(), { body: hello, headers: { 'x-request-id': 'the-first' } })
    await service.call('POST', hosts(), { body: hello, headers: { prefer: 'respond-async' } })
    await expect
      .poll(async () => (await service.call('GET', '/api/changes?status=refused')).body.change_list)
      .toHaveLength(1)
    await service.call('POST', hosts('example.org'), { body: hello, user: 'editor' })
    const other = { name: 'other', address: '192.0.2.11' }
    await service.call('POST', hosts(), { body: other, user: 'proposer' })
    const { events, next } = await read(service)
    expect(events.map(({ type, by, data }) => [type, by, data.domain])).toEqual([
      ['zone.changed', 'admin', 'example.com'],
      ['change.refused', 'admin', 'example.com'],
      ['zone.changed', 'editor', 'example.org'],
      ['change.proposed', 'proposer', 'example.com'],
    ])
    const [first] = events
    expect(first?.request_id).toBe('the-first')
    const { text } = await service.call('GET', `/api/changes/${first?.data.id}`)
    expect(first?.data).toEqual(JSON.parse(text))
    expect(Date.parse(first?.at ?? '')).toBeGreaterThan(Date.now() - 60_000)
    expect((await read(service, `?after=${next}`)).events).toEqual([])
    expect((await read(service, `?after=${beginning}&limit=1`)).events).toEqual([first])
    expect((await read(service, `?after=${first?.id}`)).events).toEqual(events.slice(1))
    expect((await read(service, '?types=change.refused')).events).toEqual([events[1]])
    const own = await read(service, '', 'limited')
    expect(own.events).toEqual(events.filter(({ data }) => data.domain === 'example.com'))
    expect(own.next >= next).toBe(true)
  })

  it('links to the following events, up to the last', async () => {
    await using service = await start({ domains })
    for (const name of ['one', 'two', 'three']) await service.call('POST', hosts(), { body: { ...hello, name } })
    const page = async (path: string) => {
      const { text, headers } = await service.call('GET', path)
      return { ...Page.parse(JSON.parse(text)), link: headers.get('link') }
    }

    const first = await page('/api/events?types=zone.changed&limit=2')
    const [, link = ''] = /^<(.*)>; rel="next"$/.exec(first.link ?? '') ?? []
    const second = await page(link)

    expect(new URL(link, service.url).searchParams.get('after')).toBe(first.next)
    expect(first.events).toHaveLength(2)
    expect([second.events.length, second.link]).toEqual([1, null])
  })

  it('refuses other types and positions', async () => {
    await using service = await start()
    for (const query of ['?types=other', '?after=1', '?limit=0', '?limit=201', '?page=1'])
      expect((await service.call('GET', `/api/events${query}`)).status, query).toBe(400)
  })

  it('sends a stream that goes on after Last-Event-ID', async () => {
    await using service = await start({ domains })
    const latest = await openStream(service, '/api/events?after=latest')
    expect(latest.response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(latest.response.headers.get('x-accel-buffering')).toBe('no')
    expect(await latest.block()).toMatch(/^:/)
    await service.call('POST', hosts(), { body: hello })
    await service.call('POST', hosts('example.org'), { body: hello })
    const { events } = await read(service)
    const parse = (block = '') => {
      const [, id, type, data = ''] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block) ?? []
      return { id, type, event: JSON.parse(data) }
    }
    const [first, second] = events.map((event) => ({ id: event.id, type: event.type, event }))
    expect(parse(await latest.block())).toEqual(first)
    expect(parse(await latest.block())).toEqual(second)
    latest.close()
    // As a browser reconnects, with the URL that it began with.
    const resumed = await openStream(service, '/api/events?after=latest', {
      'last-event-id': events[0]?.id ?? '',
    })
    expect(await resumed.block()).toMatch(/^:/)
    expect(parse(await resumed.block())).toEqual(second)
  })

  it('sends a comment every 15 seconds, and ends with the right to listen', async () => {
    const clock = new FakeClock()
    const setTimer = vi.spyOn(clock, 'setTimer')
    await using service = await start({ clock })
    const answer = await fetch(`${service.url}/api/tokens`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await service.sessionOf('admin')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ name: 'listener' }),
    })
    const created = z.object({ id: z.string(), token: z.string() }).parse(await answer.json())
    const stream = await openStream(service, '/api/events', {
      authorization: `Bearer ${created.token}`,
    })
    expect(await stream.block()).toMatch(/^: events/)
    const comment = async () => {
      const found = stream.block()
      // The stream may not wait yet.
      for (let isFound = false; !isFound; ) {
        await clock.advance(15_000)
        isFound = await Promise.race([found.then(() => true), service.call('GET', '/api/events').then(() => false)])
      }
      return found
    }
    expect(await comment()).toMatch(/^:\nid: [0-9A-Z]{26}$/)
    expect(await comment()).toMatch(/^:\nid: [0-9A-Z]{26}$/)
    expect(setTimer).toHaveBeenCalledWith(expect.any(Function), 15_000)
    await service.call('DELETE', `/api/tokens/${created.id}`)
    for (let last: string | undefined = ''; last !== undefined; ) last = await comment()
  })

  it('refuses a Last-Event-ID that is no id, in both forms, and takes an empty one for none', async () => {
    await using service = await start({ domains })
    const { events } = await read(service)

    for (const accept of ['application/json', 'text/event-stream'])
      for (const id of ['junk', 'latest']) {
        const headers = { accept, 'last-event-id': id }
        const { status, body } = await service.call('GET', '/api/events', { headers })
        expect([status, body.errors?.[0]?.path]).toEqual([400, '/header/last-event-id'])
      }
    const headers = { 'last-event-id': '' }
    const { body } = await service.call('GET', '/api/events', { headers })
    expect(body.events).toEqual(events)
  })

  it('cuts a listener that does not read, which goes on after what it has got', async () => {
    await using service = await start({ domains, env: { STALL_TIMEOUT_MS: '1000' } })
    // More than what the sockets hold.
    const url = await databaseOf(service.dataDir)
    const file = join(service.dataDir, databaseName)
    const database = url === undefined ? new SqliteSql({ file }) : await connect(url)
    const data = { registrar: 'x'.repeat(200_000) }
    const added = Array.from({ length: 100 }, () => ({ type: 'registrar.failing', data }))
    await database.transaction((transaction) => appendEvents(transaction, added))
    await database.close()
    const { events: all } = await read(service, '?limit=200')
    const seen: string[] = []
    let cuts = 0
    while (seen.length < all.length) {
      const last = seen.at(-1)
      const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
      const { block, close } = await openStream(service, '/api/events', headers)
      if (cuts === 0) {
        const isCut = () => service.lines().some(({ path, msg }) => path === '/api/events' && msg === 'request aborted')
        await expect.poll(isCut).toBe(true)
      }
      const next = () => block().catch(() => undefined)
      for (let text = await next(); text !== undefined; text = await next()) {
        const [, id] = /^id: (\w+)\nevent:/.exec(text) ?? []
        if (id !== undefined) seen.push(id)
        if (seen.length === all.length) break
      }
      close()
      cuts++
    }
    expect(seen).toEqual(all.map(({ id }) => id))
    expect(cuts).toBeGreaterThan(1)
  })

  it('has at most 100 listeners, and ends them when the service stops', async () => {
    await using service = await start()
    const streams = await Promise.all(Array.from({ length: 100 }, () => openStream(service, '/api/events')))
    for (const { response } of streams) expect(response.status).toBe(200)
    const { response } = await openStream(service, '/api/events')
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('30')
    streams[0]?.close()
    await expect
      .poll(async () => {
        const another = await openStream(service, '/api/events')
        return another.response.status
      })
      .toBe(200)
    await service.close()
    for (const stream of streams.slice(1)) {
      let block = await stream.block()
      while (block !== undefined) {
        expect(block).toMatch(/^:/)
        block = await stream.block()
      }
    }
  })
})
