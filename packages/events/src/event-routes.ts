import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { Auth, Caller } from '@domains-and-files/auth'
import {
  type App,
  answers,
  type Clock,
  HttpError,
  linkNext,
  operations,
  pageQuery,
  validationFailed,
} from '@domains-and-files/http'
import { z } from 'zod'
import { Event, exampleId } from './event.ts'
import { type EventLog, type EventSource, eventIdPattern, eventsExpired } from './outbox.ts'

const maxListeners = 100
const commentMs = 15_000

interface Dependencies extends Pick<Auth, 'findReader'> {
  log: EventLog
  clock: Clock
}

/** GET /api/events: page by page, or as a stream that stays open. */
export function registerEventRoutes(app: App, { log, clock, findReader }: Dependencies) {
  const openStream = eventStreams(app, log, clock)
  const { listEvents } = routesOf(log.source)
  app.get('/api/events', listEvents, async (request, reply) => {
    const { after: position, ...query } = request.query
    const lastId = String(request.headers['last-event-id'] ?? '')
    if (lastId && !eventIdPattern.test(lastId)) throw validationFailed([notAnId])
    const lastSeen = lastId || position
    const after = lastSeen === 'latest' ? await log.end() : lastSeen
    const read = (reader: Caller, after?: string) => log.page({ ...query, after, reader })
    reply.header('vary', 'accept').header('cache-control', 'no-store')
    const { method, headers } = request
    if (method !== 'GET' || !/\btext\/event-stream\b/.test(headers.accept ?? '')) {
      const { events, next, isEnd } = await read(request.caller, after)
      // No link at the end, where a client that follows links would ask without end.
      return { events, next: isEnd ? next : linkNext(request, reply, next) }
    }
    const response = new AbortController()
    reply.raw.once('close', () => response.abort())
    // The client may have left while it was authenticated.
    if (reply.raw.closed) response.abort()
    const follow = async (after?: string) => {
      const caller = await findReader(request)
      return caller && read(caller, after)
    }
    const frames = await openStream(follow, after, response.signal)
    // Without these, nginx would buffer events, and shutdown would wait for the connection.
    reply.header('x-accel-buffering', 'no').header('connection', 'close')
    reply.type('text/event-stream; charset=utf-8')
    // Cast: the response schema describes a page, not the stream.
    return reply.send(Readable.from(frames, { highWaterMark: 1 }) as never)
  })
}

type Page = Awaited<ReturnType<EventLog['page']>>

/** Reads the events after a position that the listener may see. Undefined: access was revoked. */
type Read = (after?: string) => Promise<Page | undefined>

/**
 * Streams of server-sent events (HTML, 9.2), with back-pressure: events are read only as fast as the listener takes
 * them, so a slow listener costs no memory until the server disconnects it. They end when the app closes.
 * @returns opens a stream: its frames until the response is `gone`, or access is revoked.
 * @throws 503 `too_many_listeners`, and the errors of the first page.
 */
function eventStreams(app: App, log: EventLog, clock: Clock) {
  let listeners = 0
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
    log.appended.emit('events')
  })
  async function* framesOf(read: Read, first: Page | undefined, gone: AbortSignal) {
    yield ': events follow\n\n'
    for (let page = first; page; ) {
      for (const event of page.events) yield `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
      const isCurrent = page.isEnd && page.next >= log.lastEnd
      // An id without data advances Last-Event-ID past events hidden from this listener.
      if (isCurrent && !(await isWoken(gone))) yield `:\nid: ${page.next}\n\n`
      if (isClosing || gone.aborted) return
      // On an error end the stream: the client reconnects, and that request gets the error.
      page = await read(page.next).catch(() => undefined)
    }
  }
  /** Waits for an event or the end of the response. @returns false after 15 seconds without one. */
  async function isWoken(gone: AbortSignal): Promise<boolean> {
    const idle = new AbortController()
    const timer = clock.setTimer(() => idle.abort(), commentMs)
    const signal = AbortSignal.any([gone, idle.signal])
    await once(log.appended, 'events', { signal }).catch(() => undefined)
    timer.cancel()
    return !idle.signal.aborted
  }
  return async (read: Read, after: string | undefined, gone: AbortSignal) => {
    if (gone.aborted) return framesOf(read, undefined, gone)
    if (listeners >= maxListeners || isClosing) throw tooManyListeners()
    listeners += 1
    gone.addEventListener('abort', () => {
      listeners -= 1
    })
    return framesOf(read, await read(after), gone)
  }
}

const notAnId = { path: '/header/last-event-id', message: 'must be the id of an event' }

const tooManyListeners = () =>
  new HttpError(
    503,
    'too_many_listeners',
    `${maxListeners} streams of events are open already: try again later, or read page by page`,
    { retryAfter: 30 },
  )

const routesOf = ({ types, example }: EventSource) =>
  operations({
    shared: { access: 'viewer', folders: 'handler', tags: ['events'] },
    listEvents: {
      summary: 'What has happened, oldest first',
      description: `Events of the last 30 days about what the caller may see. Read on with \`after\` = \`next\`, at the end too: nothing is missed. Types: ${types.map((type) => `\`${type}\``).join(', ')}.

With \`Accept: text/event-stream\` the response stays open and sends each event when it happens (server-sent events; a comment every 15 seconds). After a break, send the last id as \`Last-Event-ID\`, as browsers do.`,
      querystring: z.strictObject({
        after: z
          .string('must be given once')
          .refine(
            (text) => text === 'latest' || eventIdPattern.test(text),
            'must be the "next" of an earlier response, the id of an event, or latest',
          )
          .optional()
          .describe(
            'the `next` of an earlier response, or the id of an event; `latest`: only what happens from now on; default: from the oldest',
          ),
        types: z
          .string('must be given once')
          .transform((text) => text.split(','))
          .refine((list) => list.every((type) => types.includes(type)), `must be some of ${types.join(',')}`)
          .optional()
          .meta({ type: 'string', description: 'comma-separated; default: all' }),
        limit: pageQuery(50, 200).page_size,
      }),
      requestHeaders: {
        'last-event-id': {
          description: 'instead of `after`: the id of the last event of an earlier stream',
          example: exampleId,
        },
      },
      errors: [eventsExpired(), tooManyListeners()],
      ...answers(200, 'Events, oldest first', pageSchema(example)),
    },
  })

const pageSchema = ({ type, data }: EventSource['example']) => {
  const { at, by, request_id } = data
  const example = { id: exampleId, type, at, by, request_id, data }
  return z
    .object({
      events: z.array(Event),
      next: z.string().describe('the position after these events: send it as `after`'),
    })
    .meta({ id: 'EventPage', examples: [{ events: [example], next: exampleId }] })
}
