import { setTimeout } from 'node:timers/promises'
import { limitsOf } from '@domains-and-files/auth'
import { type Clock, HttpError, type Logger } from '@domains-and-files/http'
import { type Event, type EventSource, toEvent } from '../event-source.ts'
import { type EventLog, eventId, idsPerMs, type StoredEvent, timeOfId } from '../outbox.ts'
import { type Attempt, sendDelivery } from './send-delivery.ts'
import { testType } from './webhook-schemas.ts'
import { type Delivery, retryDelaysMs, type Webhook, type WebhookStore } from './webhook-store.ts'

const pageSize = 50

interface Dependencies {
  store: WebhookStore
  log: EventLog
  source: EventSource
  clock: Clock
  /** Private networks that webhooks may reach. */
  networks: readonly string[]
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
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()
  #polling: Promise<void> | undefined

  constructor(parts: Dependencies) {
    this.#parts = parts
  }

  start() {
    this.#polling = this.#poll()
  }

  /** Aborts running deliveries; after a restart, or in another process, they are sent again. */
  async close() {
    this.#closing.abort()
    await this.#polling
    await Promise.all(this.#running)
  }

  /** Sends a test event now, once. */
  async test(webhook: Webhook): Promise<Delivery> {
    const event = testEvent(eventId(Date.now() * idsPerMs))
    const attempt = await this.#send(webhook, event)
    return this.#parts.store.recordTest(webhook.id, { event: event.id, attempt })
  }

  async #poll() {
    const { pollMs = 500 } = this.#parts
    const { signal } = this.#closing
    while (!signal.aborted) {
      await this.#startDeliveries().catch(() => undefined) // The probe of the database logs its errors.
      await setTimeout(pollMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #startDeliveries() {
    const { store, log, logger } = this.#parts
    for (const end = await log.end(); !this.#closing.signal.aborted; ) {
      const webhook = await store.claim(end)
      if (!webhook) return
      const run = this.#deliver(webhook)
        .catch((err) => logger.warn({ err, webhook: webhook.id }, 'webhook not delivered'))
        .finally(() => this.#running.delete(run))
      this.#running.add(run)
    }
  }

  /**
   * Delivers until nothing is due: first due retries, then the events after the webhook's position. After an error it
   * stays claimed, so that the next attempt waits until the claim ends.
   */
  async #deliver(webhook: Webhook) {
    const { store } = this.#parts
    let { position } = webhook
    let page = { events: [] as Event[], next: position, isEnd: false }
    for (let isClaimed = true; isClaimed && !this.#closing.signal.aborted; ) {
      const due = await store.dueDelivery(webhook)
      const event = due ? await this.#find(webhook, due) : page.events.shift()
      const job = due ?? (event && { event: event.id, type: event.type, tries: 0 })
      if (job) {
        const attempt = event ? await this.#send(webhook, event) : gone
        if (this.#closing.signal.aborted && attempt.status === null) break
        const tries = event ? job.tries : retryDelaysMs.length
        isClaimed = await store.record(webhook, { ...job, tries, attempt })
      } else {
        position = page.next
        if (page.isEnd) break
        page = await this.#read(webhook, position)
      }
    }
    await store.release(webhook, position)
  }

  #send(webhook: Webhook, event: Event): Promise<Attempt> {
    return sendDelivery(webhook, event, { ...this.#parts, closing: this.#closing.signal })
  }

  #read(webhook: Webhook, after: string) {
    const show = (event: StoredEvent) => this.#show(webhook, event)
    const query = { types: webhook.types, limit: pageSize, show }
    return this.#parts.log.page({ ...query, after }).catch((error) => {
      if (!(error instanceof HttpError)) throw error
      return this.#parts.log.page(query) // It was paused for more than 30 days.
    })
  }

  async #find(webhook: Webhook, { event: id, type }: Delivery): Promise<Event | undefined> {
    if (type === testType) return testEvent(id)
    const event = await this.#parts.log.find(id)
    return event && this.#show(webhook, event)
  }

  #show({ domains, folders }: Webhook, event: StoredEvent): Event | undefined {
    return toEvent(event, this.#parts.source, { role: 'admin', ...limitsOf({ domains, folders }) })
  }
}

function testEvent(id: string): Event {
  const at = new Date(timeOfId(id)).toISOString()
  return { id, type: testType, at, by: null, request_id: null, data: {} }
}

/** Outcome for an event that was deleted meanwhile, or that the webhook may no longer see. */
const gone: Attempt = { status: null, ms: 0, answer: 'The event is not kept any more' }
