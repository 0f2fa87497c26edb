import { once } from 'node:events'
import { type App, type Clock, HttpError } from '@domains-and-files/http'
import type { Event } from './event-source.ts'
import type { EventLog } from './outbox.ts'

const maxListeners = 100
const commentMs = 15_000

type Page = Awaited<ReturnType<typeof EventLog.prototype.page<Event>>>

interface Listener {
  after: string | undefined
  /** Reads the events after a position that the listener may see. Undefined: access was revoked. */
  read: (after?: string) => Promise<Page | undefined>
  /** Aborted when the response has ended. */
  gone: AbortSignal
}

/**
 * Streams of server-sent events (HTML, 9.2), with back-pressure: events are read only as fast as the listener takes
 * them, so a slow listener costs no memory until the server disconnects it. They end when the app closes.
 * @returns opens a stream: the frames of one listener, until it disconnects or its access is revoked.
 * @throws 503 `too_many_listeners`, and the errors of the first page.
 */
export function eventStreams(app: App, log: EventLog, clock: Clock) {
  let listeners = 0
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
    log.appended.emit('events')
  })
  async function* framesOf({ read, gone }: Listener, first: Page | undefined) {
    yield ': events follow\n\n'
    for (let page = first; page; ) {
      for (const event of page.events)
        yield `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
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
  return async (listener: Listener) => {
    if (listeners >= maxListeners || isClosing) throw tooManyListeners()
    listeners += 1
    listener.gone.addEventListener('abort', () => {
      listeners -= 1
    })
    return framesOf(listener, await listener.read(listener.after))
  }
}

export const tooManyListeners = () =>
  new HttpError(
    503,
    'too_many_listeners',
    `${maxListeners} streams of events are open already: try again later, or read page by page`,
    { headers: { 'retry-after': '30' } },
  )
