import { HttpError } from '@domains-and-files/http'
import { type Clock, delay } from '../clock.ts'
import type { Domain } from '../dns/domain-name.ts'
import { registrarBusy } from '../errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { WriteResult, ZoneWrite } from '../zones/zone-write.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'

interface Options {
  zones: ZoneWriter
  ledger: Ledger
  clock: Clock
  /** ACME clients and routers give up after 30 s. */
  maxWaitMs?: number
}

const retryAfterSeconds = 15

/** Writes for clients that cannot wait: after 25 s they get 503, the write goes on, and a repeat finds it done. */
export class PatientWriter {
  readonly #options: Required<Options>
  /** Ids of queued changes by their content, so that repeats do not queue them again. */
  readonly #queued = new Map<string, number>()

  constructor(options: Options) {
    this.#options = { maxWaitMs: 25_000, ...options }
  }

  /** @throws {HttpError} 503 registrar_busy with Retry-After while the write goes on. */
  async write(domain: Domain, write: ZoneWrite): Promise<WriteResult> {
    const { clock, maxWaitMs } = this.#options
    const done = this.#writeOrQueue(domain, write)
    const result = await Promise.race([done, delay(clock, maxWaitMs)])
    if (result) return result
    done.catch(() => undefined) // The ledger has its outcome.
    throw registrarBusy(retryAfterSeconds)
  }

  async #writeOrQueue(domain: Domain, write: ZoneWrite): Promise<WriteResult> {
    try {
      return await this.#options.zones.write(domain, write)
    } catch (error) {
      if (isUnsent(error)) await this.#queue(domain, write)
      throw error
    }
  }

  async #queue(domain: Domain, write: ZoneWrite) {
    const { ledger, zones } = this.#options
    const key = JSON.stringify([domain.name, write.by, write.token, write.edit])
    const known = this.#queued.get(key)
    const change = known === undefined ? undefined : await ledger.find(known)
    if (change?.status === 'queued') return
    if (this.#queued.size >= maxRemembered) this.#queued.clear()
    this.#queued.set(key, (await zones.changes.add(domain, write)).id)
  }
}

const maxRemembered = 10_000

// Nothing was sent, for want of calls or because the registrar fails: it may work later.
const isUnsent = (error: unknown) =>
  error instanceof HttpError &&
  [
    'registrar_busy',
    'registrar_unavailable',
    'registrar_unreachable',
    'registrar_timeout',
  ].includes(error.code)
