import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { limitsOf, type Rights } from '@domains-and-files/auth'
import { type Clock, HttpError, type Logger, systemClock, type Timer } from '@domains-and-files/http'
import { BackgroundTask } from '@domains-and-files/persistence'
import type { Event } from '../event.ts'
import { type EventLog, eventId, idsPerMs, instantOf } from '../outbox.ts'
import {
  type Attempt,
  type Delivery,
  retryDelaysMs,
  testType,
  type Webhook,
  type WebhookStore,
} from './webhook-store.ts'
import { resolveHost, type WebhookConfig } from './webhook-urls.ts'

const pageSize = 50
const timeoutMs = 10_000
const maxBodyBytes = 65_536
const maxAnswerBytes = 1024

export interface WebhookDependencies extends WebhookConfig {
  store: WebhookStore
  log: EventLog
  clock: Clock
  logger: Logger
  /** Milliseconds between two polls for new events and due retries, while there is a webhook or a stream. */
  pollMs?: number
}

/** Milliseconds between two polls of an idle replica for webhooks created at others, which deliver meanwhile. */
const idlePollMs = 10_000

/**
 * Delivers events to webhooks: each has its own queue, with one delivery at a time. Any number of processes share the
 * work. If a process is killed, at most its running delivery is sent again.
 */
export class WebhookDispatcher {
  readonly #parts: WebhookDependencies
  readonly #closing = new AbortController()
  readonly #deliveries = new Set<Promise<void>>()
  // The probe of the database logs its errors.
  readonly #claiming = new BackgroundTask({ run: () => this.#claimAll(), onError: () => undefined })
  /** The next poll, while there is a webhook or a stream. */
  #timer: Timer | undefined

  constructor(parts: WebhookDependencies) {
    this.#parts = parts
  }

  start() {
    const { store, log } = this.#parts
    const wake = () => {
      if (!this.#timer) void this.#claiming.runAgain()
    }
    store.onChange = wake
    log.appended.on('newListener', wake)
    void this.#claiming.start(store.isShared ? idlePollMs : Number.POSITIVE_INFINITY)
  }

  /** Aborts running deliveries; after a restart, or in another process, they are sent again. */
  async close() {
    this.#closing.abort()
    await this.#claiming.close()
    this.#timer?.cancel()
    await Promise.all(this.#deliveries)
  }

  /** Sends a test event now, once. */
  async test(webhook: Webhook): Promise<Delivery> {
    const event = testEvent(eventId(Date.now() * idsPerMs))
    const attempt = await this.#send(webhook, event)
    return this.#parts.store.recordTest(webhook.id, { event: event.id, attempt })
  }

  async #claimAll() {
    const { store, log, logger, pollMs = 500 } = this.#parts
    if (this.#closing.signal.aborted) return
    this.#timer?.cancel()
    this.#timer = undefined // A webhook or stream that begins from now on starts another run.
    const isFollowed = log.appended.listenerCount('events') > 0
    const webhooks = isFollowed ? undefined : await store.list().catch(() => undefined)
    if (webhooks?.every(({ paused }) => paused)) return
    this.#timer = systemClock.setTimer(() => void this.#claiming.runAgain(), pollMs)
    const end = await log.end().catch(() => '')
    while (!this.#closing.signal.aborted) {
      const webhook = await store.claim(end)
      if (!webhook) return
      const delivery = this.#deliver(webhook)
        .catch((err) => logger.warn({ err, webhook: webhook.id }, 'webhook not delivered'))
        .finally(() => this.#deliveries.delete(delivery))
      this.#deliveries.add(delivery)
    }
  }

  /**
   * Delivers until nothing is due: first due retries, then the events after the webhook's position. After an error it
   * stays claimed, so that the next attempt waits until the claim ends.
   */
  async #deliver(webhook: Webhook) {
    const { store } = this.#parts
    const { signal } = this.#closing
    let { position } = webhook
    let page = { events: [] as Event[], next: position, isEnd: false }
    for (let isClaimed = true; isClaimed && !signal.aborted; ) {
      const due = await store.dueDelivery(webhook)
      const event = due ? await this.#find(webhook, due) : page.events.shift()
      const job = due ?? (event && { event: event.id, type: event.type, tries: 0 })
      if (job) {
        const attempt = event ? await this.#send(webhook, event) : gone
        if (signal.aborted && attempt.status === null) break
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
    const query = { types: webhook.types, limit: pageSize, reader: readerOf(webhook) }
    return this.#parts.log.page({ ...query, after }).catch((error) => {
      if (!(error instanceof HttpError)) throw error
      return this.#parts.log.page(query) // It was paused for more than 30 days.
    })
  }

  async #find(webhook: Webhook, { event: id, type }: Delivery): Promise<Event | undefined> {
    return type === testType ? testEvent(id) : this.#parts.log.find(id, readerOf(webhook))
  }
}

const readerOf = (webhook: Webhook): Rights => ({ role: 'admin', ...limitsOf(webhook) })

const testEvent = (id: string): Event => ({
  id,
  type: testType,
  at: instantOf(id),
  by: null,
  request_id: null,
  data: {},
})

/** Outcome for an event that was deleted meanwhile, or that the webhook may no longer see. */
const gone: Attempt = { status: null, ms: 0, answer: 'The event is not kept any more' }

type Target = Pick<Webhook, 'url' | 'secret'>

/**
 * Sends an event in the format of Standard Webhooks (https://www.standardwebhooks.com): one try of at most 10 s, which
 * follows no redirect and ends when the process is `closing`. Never throws.
 */
export async function sendDelivery(
  webhook: Target,
  event: Event,
  { clock, networks, closing }: Pick<WebhookDependencies, 'clock' | 'networks'> & { closing: AbortSignal },
): Promise<Attempt> {
  const startedAt = clock.now()
  const late = new AbortController()
  const timer = clock.setTimer(() => late.abort(new Error('no response within 10 s')), timeoutMs)
  const signal = AbortSignal.any([late.signal, closing])
  const failed = (error: Error) => ({ status: null, answer: (signal.reason ?? error).message })
  const end = await post(webhook, event, { networks, signal }).catch(failed)
  timer.cancel()
  return { ...end, ms: clock.now() - startedAt }
}

async function post(
  webhook: Target,
  event: Event,
  { networks, signal }: { networks: readonly string[]; signal: AbortSignal },
) {
  const url = new URL(webhook.url)
  // `dns.lookup` takes no signal, so race it.
  const aborted = once(signal, 'abort').then(() => Promise.reject(signal.reason))
  const addresses = await Promise.race([aborted, resolveHost(url.hostname, networks)])
  // Not imported: an ES import of `node:http` loads the WebSocket client at every start.
  const { request } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
  const body = bodyOf(event)
  const sending = request(url, {
    method: 'POST',
    signal,
    agent: false,
    headers: headersOf(event.id, body, webhook.secret),
    lookup: (_host, _options, done) => done(null, addresses),
  }).end(body)
  const [response]: IncomingMessage[] = await once(sending, 'response')
  let start = Buffer.alloc(0)
  try {
    for await (const chunk of response ?? []) {
      start = Buffer.concat([start, chunk])
      if (start.length >= maxAnswerBytes) break // Leaving the loop closes the connection.
    }
  } catch {} // The status counts, also where the body is cut or does not end in time.
  return { status: response?.statusCode ?? 0, answer: start.subarray(0, maxAnswerBytes).toString() }
}

/** The JSON of an event. Over `maxBodyBytes` it is sent without `data`, which GET /api/events has. */
function bodyOf(event: Event): string {
  const whole = JSON.stringify(event)
  if (Buffer.byteLength(whole) <= maxBodyBytes) return whole
  return JSON.stringify({ ...event, data: null, truncated: true })
}

function headersOf(id: string, body: string, secret: string) {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
    'content-type': 'application/json',
    'user-agent': 'domains-and-files',
  }
}
