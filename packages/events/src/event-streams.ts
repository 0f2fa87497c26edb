import { type Clock, HttpError } from '@domains-and-files/http'
import type { Event } from './event-source.ts'
import type { EventLog } from './outbox.ts'

const maxListeners = 100
const commentMs = 15_000

type Page = Awaited<ReturnType<typeof EventLog.prototype.page<Event>>>

interface Listener {
  after: string | undefined
  /** What the listener may see now, after a position; undefined: nothing any more. */
  read: (after?: string) => Promise<Page | undefined>
  /** Aborted when the response has ended. */
  gone: AbortSignal
}

/**
 * Streams of server-sent events (HTML, 9.2). Events are read only as fast as a listener takes them, so a slow one costs no
 * memory until the server cuts it.
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
   * The frames of one listener, until it goes or may not listen any more.
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
      // An id without data moves the position past events that this listener does not see.
      if (isCurrent && !(await this.#wait(gone))) yield `:\nid: ${page.next}\n\n`
      if (this.#isClosing || gone.aborted) return
      // After an error the client continues with another request, which gets it.
      page = await read(page.next).catch(() => undefined)
    }
  }

  /** Waits for an event. @returns false after 15 seconds without one. */
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
