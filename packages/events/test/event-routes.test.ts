import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { createApp, createLogger, systemClock } from '@domains-and-files/http'
import { SqliteSql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { registerEventRoutes } from '../src/event-routes.ts'
import { EventLog, type EventSource } from '../src/outbox.ts'
import { eventMigrations } from '../src/tables.ts'

const source: EventSource = {
  types: ['thing.made'],
  scope: 'folders',
  describe: ({ data }) => ({ data }),
  example: { type: 'thing.made', data: { at: '', by: null, request_id: null } },
}

test('clients that leave before their stream is open count as no listeners', async () => {
  await using stack = new AsyncDisposableStack()
  const database = new SqliteSql({ file: ':memory:', migrations: eventMigrations })
  stack.defer(() => database.close())
  const caller = { id: 'user:ann', username: 'ann', role: 'viewer' } as const
  let left = 0
  const app = await createApp(
    {
      about: { title: 'Things', version: '1.2.3', description: 'a test' },
      log: createLogger({ name: 'things', level: 'silent' }, { write: () => undefined }),
      trustProxy: false,
      corsOrigin: [],
      metrics: undefined,
      health: () => ({ checks: {} }),
      // A busy machine must not shed the requests.
      maxQueueMs: 60_000,
      maxLoopDelayMs: 60_000,
    },
    async (routes) => {
      // As an authentication that takes longer than the client waits.
      routes.addHook('onRequest', ({ headers }, { raw }, done) => {
        if (headers['x-leaves'] === undefined) return done()
        raw.once('close', () => {
          left += 1
          done()
        })
        raw.socket?.resetAndDestroy()
      })
      const log = new EventLog(database, source)
      registerEventRoutes(routes, {
        log,
        clock: systemClock,
        findReader: async () => caller,
      })
    },
  )
  stack.defer(() => app.close())
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo // We listen on a port.
  const accept = 'Accept: text/event-stream'
  for (let count = 0; count < 100; count += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    socket.write(`GET /api/events HTTP/1.1\r\nHost: x\r\nX-Leaves: 1\r\n${accept}\r\n\r\n`)
  }
  await expect.poll(() => left).toBe(100)

  const stream = await fetch(`http://127.0.0.1:${port}/api/events`, {
    headers: { accept: 'text/event-stream' },
  })

  expect(stream.status).toBe(200)
  await stream.body?.cancel()
})
