import { limitsOf } from '@domains-and-files/auth'
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
  /** Milliseconds between two polls for new events and due retries. */
  pollMs?: number
}

/**
 * Delivers events to webhooks: each has its own queue, with one delivery at a time. Any number of processes share the
 * work. If a process is killed, at most its running delivery is sent again.
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
    const { pollMs = 500 } = this.#parts
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined
      })
    }, pollMs).unref()
  }

  /** Aborts running deliveries; after a restart, or in another process, they are sent again. */
  async close() {
    this.#isClosing = true
    clearInterval(this.#timer)
    this.#parts.sender.close()
    await this.#looking
    await Promise.all(this.#running.values())
  }

  /** Sends a test event now, once. */
  async test(webhook: Webhook): Promise<Delivery> {
    const { sender, store } = this.#parts
    const event = testEvent(eventId(Date.now() * idsPerMs))
    const attempt = await sender.send({ ...webhook, event })
    return store.recordTest(webhook.id, { event: event.id, attempt })
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
      // The database is unavailable, which its probe logs.
    }
  }

  /** Delivers until nothing is due: first due retries, then the events after the webhook's position. */
  async #deliver(id: string) {
    const { store } = this.#parts
    const webhook = await store.claim(id)
    if (!webhook) return
    let delivered = webhook.position
    let page = { events: [] as Event[], next: delivered, isEnd: false }
    try {
      while (!this.#isClosing) {
        const due = await store.dueDelivery(webhook)
        const event = due ? await this.#find(webhook, due) : page.events.shift()
        const job = due ?? (event && { event: event.id, type: event.type, tries: 0 })
        if (job) {
          if (!(await this.#try(webhook, job, event))) return
        } else {
          delivered = page.next
          if (page.isEnd) return
          page = await this.#read(webhook, delivered)
        }
      }
    } finally {
      await store.release(webhook, delivered)
    }
  }

  /** Makes one try and records it. @returns false to stop delivering to this webhook. */
  async #try(
    webhook: ClaimedWebhook,
    { event: id, type, tries }: Pick<Delivery, 'event' | 'type' | 'tries'>,
    event: Event | undefined,
  ): Promise<boolean> {
    const { store, sender } = this.#parts
    if (!event) return store.record(webhook, { event: id, type, tries: lastTry, attempt: gone })
    const attempt = await sender.send({ ...webhook, event })
    if (this.#isClosing && attempt.status === null) return false
    return store.record(webhook, { event: id, type, tries, attempt })
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
    const reader = { role: 'admin' as const, ...limitsOf({ domains, folders }) }
    const data = this.#parts.source.describe(event, reader)
    return data && toEvent(event, data)
  }
}

const testEvent = (id: string) =>
  toEvent({ id, type: testType, by: null, requestId: null, data: {} }, {})

/** Outcome for an event that was deleted meanwhile, or that the webhook may no longer see. */
const gone: Attempt = { status: null, ms: 0, answer: 'The event is not kept any more' }
const lastTry = retryDelaysMs.length
