import { HttpError, type Logger } from '@domains-and-files/http'
import { eventId, idsPerMs } from '../event-id.ts'
import { type Event, type EventSource, toEvent } from '../event-source.ts'
import type { EventLog, StoredEvent } from '../outbox.ts'
import type { Attempt, DeliverySender } from './send-delivery.ts'
import {
  type ClaimedWebhook,
  type Delivery,
  retryDelaysMs,
  testType,
  type Webhook,
  type WebhookStore,
} from './webhook-store.ts'

const pageSize = 50

interface Dependencies {
  store: WebhookStore
  log: EventLog
  source: EventSource
  sender: DeliverySender
  logger: Logger
  /** How often it looks for events, and for tries that are due. */
  pollMs?: number
}

/**
 * Delivers events to the webhooks, each from its own queue, one delivery at a time. Any number of processes share them. A
 * process that is killed repeats at most the delivery that it had begun.
 */
export class WebhookDispatcher {
  readonly #parts: Dependencies
  readonly #running = new Map<string, Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #isClosing = false

  constructor(parts: Dependencies) {
    this.#parts = parts
  }

  start() {
    const { pollMs = 1_000 } = this.#parts
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined
      })
    }, pollMs).unref()
  }

  /** Ends the deliveries under way: they are begun again, here or by another process. */
  async close() {
    this.#isClosing = true
    clearInterval(this.#timer)
    this.#parts.sender.close()
    await this.#looking
    await Promise.all(this.#running.values())
  }

  /** Sends a test event now, once. @returns the event's id. */
  async test(webhook: Webhook): Promise<string> {
    const { sender, store } = this.#parts
    const event = testEvent(eventId(Date.now() * idsPerMs))
    const attempt = await sender.send({ ...webhook, event })
    await store.recordTest(webhook.id, { event: event.id, attempt })
    return event.id
  }

  async #look() {
    const { store, log, logger } = this.#parts
    try {
      for (const id of await store.due(await log.end())) {
        if (this.#isClosing || this.#running.has(id)) continue
        const run = this.#deliver(id)
          .catch((error: unknown) =>
            logger.warn({ err: error, webhook: id }, 'webhook not delivered'),
          )
          .finally(() => this.#running.delete(id))
        this.#running.set(id, run)
      }
    } catch {
      // The database does not answer, which its probe logs.
    }
  }

  /** Delivers until nothing is due: tries that are to be repeated, then the events after the webhook's position. */
  async #deliver(id: string) {
    const { store } = this.#parts
    const webhook = await store.claim(id)
    if (!webhook) return
    let delivered = webhook.position
    try {
      let queue: Event[] = []
      for (let next = delivered; !this.#isClosing; ) {
        const due = await store.dueDelivery(webhook)
        if (!due && queue.length === 0) {
          const page = await this.#read(webhook, next)
          queue = page.events
          next = page.next
          if (queue.length === 0) delivered = next
          if (queue.length === 0 && page.isEnd) return
          continue
        }
        if (!(await this.#try(webhook, due ?? queue.shift()))) return
      }
    } finally {
      await store.release(webhook, delivered)
    }
  }

  /** One try of a new event, or of a delivery to be repeated. @returns false where the webhook gets nothing more now. */
  async #try(webhook: ClaimedWebhook, job: Event | Delivery | undefined): Promise<boolean> {
    const { store, sender } = this.#parts
    if (!job) return false
    const isNew = 'id' in job
    const event = isNew ? job : await this.#find(webhook, job)
    const attempt = event ? await sender.send({ ...webhook, event }) : gone
    if (this.#isClosing && attempt.status === null) return false
    const tries = event ? (isNew ? 0 : job.tries) : lastTry
    return store.record(webhook, {
      event: isNew ? job.id : job.event,
      type: job.type,
      tries,
      attempt,
    })
  }

  async #read(webhook: Webhook, after: string) {
    const query = {
      types: webhook.types,
      limit: pageSize,
      show: (event: StoredEvent) => this.#show(webhook, event),
    }
    try {
      return await this.#parts.log.page({ ...query, after })
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      return this.#parts.log.page(query) // It was paused for more than 30 days.
    }
  }

  async #find(webhook: Webhook, { event: id, type }: Delivery): Promise<Event | undefined> {
    if (type === testType) return testEvent(id)
    const event = await this.#parts.log.find(id)
    return event && this.#show(webhook, event)
  }

  #show({ domains, folders }: Webhook, event: StoredEvent): Event | undefined {
    const rights = {
      role: 'admin' as const,
      ...(domains && { domains }),
      ...(folders && { folders }),
    }
    const data = this.#parts.source.describe(event, rights)
    return data && toEvent(event, data)
  }
}

const testEvent = (id: string) =>
  toEvent({ id, type: testType, by: null, requestId: null, data: {} }, {})

/** Of an event that was deleted meanwhile, or that the webhook does not get any more. */
const gone: Attempt = { status: null, ms: 0, answer: 'The event is not kept any more' }
const lastTry = retryDelaysMs.length
