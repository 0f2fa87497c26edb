import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from 'pg'

interface ListenerOptions {
  connect: () => Promise<Client>
  onError: (error: unknown) => void
}

const reconnectMs = 1000
/** Milliseconds between two checks that the connection is alive. */
const checkIntervalMs = 10_000

/**
 * LISTEN on a dedicated connection, with reconnects. Notifications during an outage are lost, so after each connect every
 * listener is called once with an empty payload.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #listeners = new Map<string, Set<(payload: string) => void>>()
  #client: Client | undefined
  #running: Promise<void> | undefined
  readonly #closed = new AbortController()

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  async listen(channel: string, listener: (payload: string) => void): Promise<void> {
    const listeners = this.#listeners.get(channel) ?? new Set()
    this.#listeners.set(channel, listeners.add(listener))
    if (this.#client) await this.#client.query(`listen ${channel}`).catch(this.#options.onError)
    else this.#running ??= this.#keepConnected()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#client?.end().catch(() => undefined)
    await this.#running
  }

  async #keepConnected() {
    while (!this.#closed.signal.aborted) {
      try {
        await this.#connected()
      } catch (error) {
        this.#options.onError(error)
      }
      this.#client = undefined
      await wait(reconnectMs, undefined, { signal: this.#closed.signal }).catch(() => undefined)
    }
  }

  /** Resolves when the connection has ended. */
  async #connected() {
    const client = await this.#options.connect()
    const ended = Promise.withResolvers<unknown>()
    let check: NodeJS.Timeout | undefined
    client.once('end', () => ended.resolve(undefined))
    client.on('error', (error) => {
      this.#options.onError(error)
      ended.resolve(error)
    })
    try {
      client.on('notification', ({ channel, payload = '' }) => this.#dispatch(channel, payload))
      for (const channel of this.#listeners.keys()) await client.query(`listen ${channel}`)
      this.#client = client
      for (const channel of this.#listeners.keys()) this.#dispatch(channel, '')
      if (this.#closed.signal.aborted) return
      check = setInterval(() => client.query('select 1').catch(ended.resolve), checkIntervalMs)
      await ended.promise
    } finally {
      clearInterval(check)
      client.end().catch(() => undefined)
    }
  }

  #dispatch(channel: string, payload: string) {
    for (const listener of this.#listeners.get(channel) ?? []) listener(payload)
  }
}
