import type { AddressInfo } from 'node:net'
import net from 'node:net'
import { Writable } from 'node:stream'
import { z } from 'zod'
import {
  type App,
  type AppOptions,
  createApp,
  createLogger,
  type HealthReport,
  HttpError,
  Pagination,
  pageQuery,
  paginate,
} from '../../src/index.ts'

const open = { access: 'public' } as object

async function sampleRoutes(app: App) {
  const Item = z.strictObject({
    name: z.string().min(2, 'must have 2 characters or more'),
    size: z.int('must be a whole number'),
  })
  app.get(
    '/things',
    {
      config: open,
      schema: {
        operationId: 'listThings',
        summary: 'List things',
        querystring: z.strictObject(pageQuery(20, 100)),
        response: { 200: z.object({ things: z.array(z.string()), pagination: Pagination }) },
      },
    },
    async ({ query }) => ({ things: [], pagination: paginate(query, 41) }),
  )
  app.post(
    '/things/:id',
    {
      config: open,
      bodyLimit: 1_048_576,
      schema: {
        operationId: 'addThings',
        summary: 'Add things',
        params: z.strictObject({ id: z.string().regex(/^[a-z]+$/, 'must be letters') }),
        body: z.strictObject({ items: z.array(Item) }),
        response: { 201: z.object({ id: z.string(), count: z.int() }) },
      },
    },
    async (request, reply) => reply.code(201).send({ id: request.params.id, count: request.body.items.length }),
  )
  app.post('/reset', { config: open, schema: { operationId: 'reset' } }, async () => ({
    done: true,
  }))
  app.get('/broken', { config: open, schema: { operationId: 'fail' } }, async () => {
    throw new Error('a secret detail')
  })
  app.get('/range', { config: open, schema: { operationId: 'readRange' } }, async () => {
    throw new HttpError(416, 'bad_range', 'Out of range', {
      headers: { 'content-range': 'bytes */9' },
    })
  })
  app.post('/echo', { config: open, schema: { hide: true } }, async ({ body }) => ({
    received: typeof body,
  }))
  app.post('/slow', { config: open, bodyLimit: 1_048_576, schema: { hide: true } }, async () => {
    slow.entered.resolve()
    await slow.released.promise
    return { done: true }
  })
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.post('/unread', { config: open, schema: { hide: true } }, async () => {
      slow.entered.resolve()
      await slow.released.promise
      return { done: true }
    })
  })
  app.get('/slow', { config: open, schema: { operationId: 'wait' } }, async () => {
    slow.entered.resolve()
    await slow.released.promise
    return { done: true }
  })
}

const gate = () => ({
  entered: Promise.withResolvers<void>(),
  released: Promise.withResolvers<void>(),
})

let slow = gate()

export interface Started extends AsyncDisposable {
  url: string
  app: App
  lines: () => Record<string, unknown>[]
  /** Resolves when a request to /slow has reached its handler, which waits there until it is released. */
  slowEntered: () => Promise<void>
  releaseSlow: () => void
  /** Sends bytes as they are and collects what comes back until the server ends or `until` was seen. */
  raw: (bytes: string | Buffer, until?: string) => Promise<string>
}

/** The real app on a free port, with a few routes of a made-up service. `prepare` runs before it listens. */
export async function start(options: Partial<AppOptions> = {}, prepare?: (app: App) => void): Promise<Started> {
  slow = gate()
  const written: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk))
      done()
    },
  })
  const app = await createApp(
    {
      about: { title: 'Things', version: '1.2.3', description: 'a test' },
      log: createLogger({ name: 'things', level: 'info' }, sink),
      trustProxy: false,
      corsOrigin: [],
      metrics: undefined,
      health: (): HealthReport => ({ checks: { disk: { status: 'ok' } } }),
      // A busy machine must not shed the requests of tests.
      maxLoopDelayMs: 60_000,
      maxQueueMs: 60_000,
      ...options,
    },
    sampleRoutes,
  )
  prepare?.(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo // An address with a port, since we listen on one.
  return {
    url: `http://127.0.0.1:${port}`,
    app,
    lines: () => written.flatMap((line) => JSON.parse(line)),
    slowEntered: () => slow.entered.promise,
    releaseSlow: () => slow.released.resolve(),
    raw: (bytes, until) => exchange(port, bytes, until),
    [Symbol.asyncDispose]: async () => {
      slow.released.resolve()
      await app.close()
    },
  }
}

function exchange(port: number, bytes: string | Buffer, until?: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes))
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    if (until && text.includes(until)) {
      socket.destroy()
      resolve(text)
    }
  })
  socket.on('error', reject)
  socket.on('close', () => resolve(text))
  return promise
}
