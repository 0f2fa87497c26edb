import { type Clock, HttpError } from '@domains-and-files/http'
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
 * them, so a slow listener costs no memory until the server disconnects it.
 */
export class EventStreams {
  readonly #log: EventLog
  readonly #clock: Clock
  #listeners = 0
  #isClosing = false

  constructor(log: EventLog, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /**
   * The frames of one listener, until it disconnects or its access is revoked.
   * @throws 503 `too_many_listeners`, and the errors of the first page.
   */
  async open(listener: Listener): Promise<AsyncGenerator<string>> {
    if (this.#listeners >= maxListeners || this.#isClosing) throw tooManyListeners()
    this.#listeners += 1
    listener.gone.addEventListener('abort', () => {
      this.#listeners -= 1
    })
    return this.#frames(listener, await listener.read(listener.after))
  }

  /** Ends all streams. */
  close() {
    this.#isClosing = true
    this.#log.appended.emit('events')
  }

  async *#frames({ read, gone }: Listener, first: Page | undefined) {
    yield ': events follow\n\n'
    for (let page = first; page; ) {
      for (const event of page.events)
        yield `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
      const isCurrent = page.isEnd && page.next >= this.#log.lastEnd
      // An id without data advances Last-Event-ID past events hidden from this listener.
      if (isCurrent && !(await this.#wait(gone))) yield `:\nid: ${page.next}\n\n`
      if (this.#isClosing || gone.aborted) return
      // On an error end the stream: the client reconnects, and that request gets the error.
      page = await read(page.next).catch(() => undefined)
    }
  }

  /** Waits for an event or the end of the response. @returns false after 15 seconds without one. */
  async #wait(gone: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const wake = () => resolve(true)
    const timer = this.#clock.setTimer(() => resolve(false), commentMs)
    this.#log.appended.once('events', wake)
    gone.addEventListener('abort', wake)
    const isWoken = await promise
    timer.cancel()
    this.#log.appended.off('events', wake)
    gone.removeEventListener('abort', wake)
    return isWoken
  }
}

export const tooManyListeners = () =>
  new HttpError(
    503,
    'too_many_listeners',
    `${maxListeners} streams of events are open already: try again later, or read page by page`,
    { headers: { 'retry-after': '30' } },
  )
