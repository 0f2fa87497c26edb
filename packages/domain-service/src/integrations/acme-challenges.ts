import { requireRrsetWrites } from '@domains-and-files/auth'
import type { Logger } from '@domains-and-files/http'
import type { Clock, Timer } from '../clock.ts'
import { type Domain, readDomain } from '../dns/domain-name.ts'
import type { RecordKey } from '../dns/record-validation.ts'
import type { ChallengeStore, StoredChallenge } from '../ledger/challenge-store.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import type { HostName } from './host-name.ts'
import type { RetryingWriter, WriteContext } from './retrying-writer.ts'

interface Options {
  zones: ZoneWriter
  writer: RetryingWriter
  store: ChallengeStore
  clock: Clock
  /** Seconds after which a challenge that no client removed is removed. */
  maxAgeSeconds: number
  log: Logger
}

const challengeTtl = 60
const sweepIntervalMs = 3_600_000

/** TXT records of ACME challenges: set, removed, and swept when their client forgets them. */
export class AcmeChallenges {
  readonly #options: Options
  #timer: Timer | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** Sweeps every hour; most forgotten challenges are removed before, together with another write. */
  start() {
    this.#timer = this.#options.clock.setTimer(() => {
      this.sweep().catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'old ACME challenges not removed'),
      )
      this.start()
    }, sweepIntervalMs)
  }

  close() {
    this.#timer?.cancel()
  }

  /** Adds a value. With `keep`, of the values set here only the newest so many stay. Idempotent. */
  async present(host: HostName, value: string, context: WriteContext, keep = Infinity) {
    requireRrsetWrites(context.caller, [{ name: host.name, type: 'TXT' }])
    const { store, writer, clock } = this.#options
    const challenge = { domain: host.domain.name, name: host.name, value }
    const others = (await store.list(challenge)).filter((each) => each.value !== value)
    const outdated = others.slice(0, Math.max(0, others.length - (keep - 1)))
    await store.add({ ...challenge, createdAt: clock.now() })
    await this.#sweepDomain(host.domain, value)
    const present = [{ ...toKey(challenge), ttl: challengeTtl }]
    const absent = outdated.map(toKey)
    await writer.write(host.domain, { kind: 'ensure', present, absent }, context)
    await this.#forget(outdated)
  }

  /** Removes that value only; done where there is none. */
  async cleanUp(host: HostName, value: string, context: WriteContext) {
    requireRrsetWrites(context.caller, [{ name: host.name, type: 'TXT' }])
    const { writer } = this.#options
    const challenge = { domain: host.domain.name, name: host.name, value }
    await this.#sweepDomain(host.domain, value)
    const absent = [toKey(challenge)]
    await writer.write(host.domain, { kind: 'ensure', present: [], absent }, context)
    await this.#forget([challenge])
  }

  /** Removes the challenges of all domains that are too old. */
  async sweep(): Promise<void> {
    const domains = new Set((await this.#expired()).map(({ domain }) => domain))
    for (const name of domains) {
      const domain = readDomain(name)
      if (typeof domain === 'object') await this.#sweepDomain(domain)
    }
  }

  // Queued before the client's write, it joins the same batch. Resolves once it is queued.
  async #sweepDomain(domain: Domain, except?: string) {
    const { zones, log } = this.#options
    const expired = (await this.#expired()).filter(
      (each) => each.domain === domain.name && each.value !== except,
    )
    if (expired.length === 0) return
    zones
      .write(domain, {
        edit: { kind: 'ensure', present: [], absent: expired.map(toKey) },
        ifMatch: undefined,
        dryRun: false,
        force: false,
        by: 'domain-service',
        requestId: 'acme-sweep',
      })
      .then(() => this.#forget(expired))
      .catch((error: unknown) =>
        log.warn({ err: error, domain: domain.name }, 'old ACME challenges not removed'),
      )
  }

  // The records are gone: a row that stays costs one more sweep.
  async #forget(challenges: StoredChallenge[]) {
    try {
      await this.#options.store.remove(challenges)
    } catch (error) {
      this.#options.log.warn({ err: error }, 'removed ACME challenges not forgotten')
    }
  }

  #expired(): Promise<StoredChallenge[]> {
    const { store, clock, maxAgeSeconds } = this.#options
    return store.before(clock.now() - maxAgeSeconds * 1000)
  }
}

const toKey = ({ name, value }: { name: string; value: string }): RecordKey => ({
  name,
  type: 'TXT',
  address: value,
})
