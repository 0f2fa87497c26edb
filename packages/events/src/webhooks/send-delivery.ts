import { createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '@domains-and-files/http'
import type { Event } from '../event-source.ts'
import { resolveHost } from './webhook-urls.ts'

const timeoutMs = 10_000
const maxBodyBytes = 65_536
const maxAnswerBytes = 1024

/** Outcome of one try. */
export interface Attempt {
  /** Null: no response. */
  status: number | null
  ms: number
  /** The beginning of the response's body, or why there is none. */
  answer: string
}

interface Sending {
  url: string
  secret: string
  event: Event
}

/** Sends events in the format of Standard Webhooks (https://www.standardwebhooks.com). */
export class DeliverySender {
  readonly #clock: Clock
  /** Private networks that webhooks may reach. */
  readonly #networks: readonly string[]
  readonly #closing = new AbortController()

  constructor(clock: Clock, networks: readonly string[]) {
    this.#clock = clock
    this.#networks = networks
  }

  /** Makes one try of at most 10 s. Follows no redirect. Never throws. */
  async send(sending: Sending): Promise<Attempt> {
    const startedAt = this.#clock.now()
    const late = new AbortController()
    const timer = this.#clock.setTimer(() => late.abort(), timeoutMs)
    const signal = AbortSignal.any([late.signal, this.#closing.signal])
    const failed = (why: unknown) => ({ status: null, answer: messageOf(why) })
    // `dns.lookup` takes no signal, so race it.
    const aborted = new Promise<Omit<Attempt, 'ms'>>((resolve) => {
      signal.addEventListener('abort', () => resolve(failed('no response within 10 s')))
    })
    const end = await Promise.race([aborted, this.#post(sending, signal).catch(failed)])
    timer.cancel()
    return { ...end, ms: this.#clock.now() - startedAt }
  }

  /** Aborts running tries. */
  close() {
    this.#closing.abort()
  }

  async #post({ url: text, secret, event }: Sending, signal: AbortSignal) {
    const url = new URL(text)
    const addresses = await resolveHost(url.hostname, this.#networks)
    // Not imported: an ES import of `node:http` loads the WebSocket client at every start.
    const { request } =
      url.protocol === 'https:'
        ? process.getBuiltinModule('node:https')
        : process.getBuiltinModule('node:http')
    const body = bodyOf(event)
    const headers = headersOf(event.id, body, secret)
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, {
        ...{ method: 'POST', headers, signal, agent: false, autoSelectFamily: true },
        lookup: (_host, _options, done) => done(null, addresses),
      })
        .on('response', resolve)
        .on('error', reject)
        .end(body)
    })
    return { status: response.statusCode ?? 0, answer: await readStart(response) }
  }
}

const messageOf = (why: unknown) => (why instanceof Error ? why.message : String(why))

async function readStart(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= maxAnswerBytes) break // Leaving the loop closes the connection.
  }
  return Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString()
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
