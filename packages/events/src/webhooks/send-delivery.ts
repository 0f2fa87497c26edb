import { createHmac } from 'node:crypto'
import { once } from 'node:events'
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

interface SendOptions {
  clock: Clock
  /** Private networks that webhooks may reach. */
  networks: readonly string[]
  /** Aborts the try. */
  closing: AbortSignal
}

/**
 * Sends an event in the format of Standard Webhooks (https://www.standardwebhooks.com): one try of at most 10 s, which
 * follows no redirect. Never throws.
 */
export async function sendDelivery(
  webhook: { url: string; secret: string },
  event: Event,
  { clock, networks, closing }: SendOptions,
): Promise<Attempt> {
  const startedAt = clock.now()
  const late = new AbortController()
  const timer = clock.setTimer(() => late.abort(), timeoutMs)
  const signal = AbortSignal.any([late.signal, closing])
  const failed = (error: Error) => ({ status: null, answer: error.message })
  // `dns.lookup` takes no signal, so race it.
  const aborted = once(signal, 'abort').then(() => failed(new Error('no response within 10 s')))
  const end = await Promise.race([
    aborted,
    post(webhook, event, { networks, signal }).catch(failed),
  ])
  timer.cancel()
  return { ...end, ms: clock.now() - startedAt }
}

async function post(
  webhook: { url: string; secret: string },
  event: Event,
  { networks, signal }: { networks: readonly string[]; signal: AbortSignal },
) {
  const url = new URL(webhook.url)
  const addresses = await resolveHost(url.hostname, networks)
  // Not imported: an ES import of `node:http` loads the WebSocket client at every start.
  const { request } = process.getBuiltinModule(
    url.protocol === 'https:' ? 'node:https' : 'node:http',
  )
  const body = bodyOf(event)
  const headers = headersOf(event.id, body, webhook.secret)
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, {
      ...{ method: 'POST', headers, signal, agent: false, autoSelectFamily: true },
      lookup: (_host, _options, done) => done(null, addresses),
    })
      .on('response', resolve)
      .on('error', reject)
      .end(body)
  })
  let start = Buffer.alloc(0)
  for await (const chunk of response) {
    start = Buffer.concat([start, chunk])
    if (start.length >= maxAnswerBytes) break // Leaving the loop closes the connection.
  }
  return {
    status: response.statusCode ?? 0,
    answer: start.subarray(0, maxAnswerBytes).toString(),
  }
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
    ...{ 'webhook-id': id, 'webhook-timestamp': timestamp },
    'webhook-signature': `v1,${signature}`,
    ...{ 'content-type': 'application/json', 'user-agent': 'domains-and-files' },
  }
}
