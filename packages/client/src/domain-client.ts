import createClient, { type Client } from 'openapi-fetch'
import type { operations, paths } from '../generated/domain-service.d.ts'
import { unwrap } from './responses.ts'
import { type ClientOptions, openSession } from './session.ts'

export type RecordType = operations['setRrset']['parameters']['path']['type']

const pending = new Set<string>(['queued', 'sending'])
const pollMs = 2_000

/** A client of the domain service, typed by its OpenAPI document. */
export class DomainClient {
  /** Every operation, by path and method; see openapi-fetch. */
  readonly api: Client<paths>
  readonly #sleep: (milliseconds: number) => Promise<void>

  constructor(options: ClientOptions) {
    const { baseUrl, send, sleep } = openSession(options)
    this.api = createClient<paths>({ baseUrl, fetch: send })
    this.#sleep = sleep
  }

  /**
   * Waits until an asynchronous change (`Prefer: respond-async`) has an outcome, and returns it. Polls, which costs no
   * registrar call.
   * @throws {ProblemError} if the change does not exist or is not visible to the caller.
   */
  async waitForChange(id: number) {
    for (;;) {
      const change = await unwrap(this.api.GET('/api/changes/{id}', { params: { path: { id } } }))
      if (!pending.has(change.status)) return change
      await this.#sleep(pollMs)
    }
  }
}
