import { type Clock, HttpError } from '@domains-and-files/http'
import type { Event } from './event-source.ts'
import type { EventLog, StoredEvent } from './outbox.ts'

const maxListeners = 100
const commentMs = 15_000
const pollMs = 500
const pageSize = 100

interface Reader {
  types: readonly string[] | undefined
  show: (event: StoredEvent) => Event | undefined
}

interface Listener {
  after: string | undefined
  /** What the listener may see now; undefined: nothing. */
  reader: () => Promise<Reader | undefined>
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
  readonly #waiting = new Set<() => void>()
  #listeners = 0
  #poll: NodeJS.Timeout | undefined
  #end = ''
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
    this.#poll ??= setInterval(() => void this.#look(), pollMs).unref()
    listener.gone.addEventListener('abort', () => this.#leave(), { once: true })
    return this.#frames(listener, await read(this.#log, listener, listener.after))
  }

  /** Ends all streams. */
  close() {
    this.#isClosing = true
    for (const wake of this.#waiting) wake()
  }

  async *#frames(listener: Listener, first: Page | undefined) {
    yield ': events follow\n\n'
    for (let page = first; page; ) {
      for (const event of page.events)
        yield `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
      const isCurrent = page.isEnd && page.next >= this.#end
      // An id without data moves the position past events that this listener does not see.
      if (isCurrent && !(await this.#wait(listener.gone))) yield `:\nid: ${page.next}\n\n`
      if (this.#isClosing || listener.gone.aborted) return
      // After an error the client continues with another request, which gets it.
      page = await read(this.#log, listener, page.next).catch(() => undefined)
    }
  }

  /** Waits for an event. @returns false after 15 seconds without one. */
  async #wait(gone: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const wake = () => resolve(true)
    const timer = this.#clock.setTimer(() => resolve(false), commentMs)
    this.#waiting.add(wake)
    gone.addEventListener('abort', wake)
    const isWoken = await promise
    timer.cancel()
    this.#waiting.delete(wake)
    gone.removeEventListener('abort', wake)
    return isWoken
  }

  // Other replicas append events, too.
  async #look() {
    const end = await this.#log.end().catch(() => this.#end)
    if (end === this.#end) return
    this.#end = end
    for (const wake of this.#waiting) wake()
  }

  #leave() {
    this.#listeners -= 1
    if (this.#listeners > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
  }
}

async function read(log: EventLog, { reader }: Listener, after: string | undefined) {
  const query = await reader()
  return query && log.page({ ...query, after, limit: pageSize })
}

type Page = Awaited<ReturnType<typeof EventLog.prototype.page<Event>>>

export const tooManyListeners = () =>
  new HttpError(
    503,
    'too_many_listeners',
    `${maxListeners} streams of events are open already: try again later, or read page by page`,
    { headers: { 'retry-after': '30' } },
  )
